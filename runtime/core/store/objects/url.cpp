#include "runtime/core/store/objects/url.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/base64.hpp"

namespace rille::objects {

namespace {

constexpr std::string_view schemes[] = {"s3", "oss", "cos", "obs", "gs", "az"};
constexpr std::string_view scheme_end = "://";
constexpr const char* how =
    "write s3://BUCKET/KEY; the other schemes are oss, cos, obs, gs and az://ACCOUNT/CONTAINER/KEY";

Error wrong_url(std::string_view text, const std::string& why) {
  return make_error(ErrorKind::invalid, fmt::format("'{}' is not an address in a store: {}", text, why), how);
}

bool only_of(std::string_view text, std::string_view more) {
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || more.find(c) != std::string_view::npos;
  });
}

// Buckets become a part of a host name, so that nothing else may be in them.
bool is_bucket(std::string_view name) {
  constexpr std::string_view large = "ABCDEFGHIJKLMNOPQRSTUVWXYZ-._";
  return !name.empty() && name.size() <= 222 && only_of(name, large) && name.front() != '.' && name.back() != '.' &&
         name.find("..") == std::string_view::npos;
}

// Takes "endpoint=..&region=.." off the end of `rest`; any other text after "?" stays.
Result<> take_options(std::string_view whole, std::string_view& rest, ObjectUrl& url) {
  const std::size_t mark = rest.rfind('?');
  if (mark == std::string_view::npos) return success();
  ObjectUrl told;
  for (std::string_view left = rest.substr(mark + 1);;) {
    const std::size_t end = std::min(left.find('&'), left.size());
    const std::string_view pair = left.substr(0, end);
    std::string* to = pair.starts_with("endpoint=") ? &told.endpoint
                      : pair.starts_with("region=") ? &told.region
                                                    : nullptr;
    if (!to) return success();
    *to = pair.substr(pair.find('=') + 1);
    if (end == left.size()) break;
    left.remove_prefix(end + 1);
  }
  rest = rest.substr(0, mark);
  url.endpoint = told.endpoint;
  url.region = told.region;
  while (url.endpoint.ends_with('/')) url.endpoint.pop_back();
  const std::string_view end = url.endpoint;
  const bool web = end.starts_with("http://") || end.starts_with("https://");
  const std::size_t host = web ? end.find(scheme_end) + scheme_end.size() : 0;
  if (!end.empty() && (!web || host == end.size() || end.find_first_of("/@?#", host) != std::string_view::npos))
    return make_error(ErrorKind::invalid,
                      fmt::format("the endpoint '{}' in '{}' is not http(s)://HOST[:PORT]", end, whole),
                      "write it as ?endpoint=https://HOST at the end of the address, without a path");
  if (!only_of(url.region, "-"))
    return make_error(ErrorKind::invalid, fmt::format("the region '{}' in '{}' is not a name", url.region, whole),
                      "write it as the cloud does, such as ?region=eu-west-1");
  return success();
}

}  // namespace

std::string ObjectUrl::root() const {
  return scheme + std::string(scheme_end) + (account.empty() ? "" : account + "/") + bucket + "/";
}

std::string ObjectUrl::text() const {
  std::string out = root() + key;
  char mark = '?';
  for (const auto& [name, value] : {std::pair("endpoint", &endpoint), std::pair("region", &region)}) {
    if (value->empty()) continue;
    ((out += mark) += name) += "=" + *value;
    mark = '&';
  }
  return out;
}

bool is_object_url(std::string_view text) {
  const std::size_t end = text.find(scheme_end);
  return end != std::string_view::npos &&
         std::find(std::begin(schemes), std::end(schemes), text.substr(0, end)) != std::end(schemes);
}

Result<> check_key(std::string_view key) {
  const char* why = key.empty()                  ? "it is empty"
                    : key.size() > key_bytes_max ? "it is longer than 1024 bytes, the limit of every store"
                    : !is_utf8(key)              ? "it is not UTF-8"
                    : key.find('\0') != key.npos ? "it has a zero byte"
                                                 : nullptr;
  if (!why) return success();
  return make_error(ErrorKind::invalid, fmt::format("not a key of an object: {}", why),
                    "an object's key is a UTF-8 text of at most 1024 bytes, such as data/train.bin");
}

Result<ObjectUrl> parse_object_url(std::string_view text) {
  if (!is_object_url(text)) return wrong_url(text, "it does not begin with a store's scheme");
  ObjectUrl url;
  std::string_view rest = text;
  url.scheme = rest.substr(0, rest.find(scheme_end));
  rest.remove_prefix(url.scheme.size() + scheme_end.size());
  RILLE_CHECK(take_options(text, rest, url));
  const auto segment = [&rest] {
    const std::size_t end = std::min(rest.find('/'), rest.size());
    const std::string_view out = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    return out;
  };
  if (url.scheme == "az") {
    url.account = segment();
    if (url.account.empty() || url.account.size() > 24 || !only_of(url.account, ""))
      return wrong_url(text, fmt::format("'{}' is not the name of a storage account", url.account));
  }
  url.bucket = segment();
  if (url.bucket.empty()) return wrong_url(text, url.scheme == "az" ? "it names no container" : "it names no bucket");
  if (!is_bucket(url.bucket)) return wrong_url(text, fmt::format("'{}' is not the name of a bucket", url.bucket));
  url.key = rest;
  if (!url.key.empty()) RILLE_CHECK(check_key(url.key));
  return url;
}

}  // namespace rille::objects
