#include "runtime/core/net/content.hpp"

#include <algorithm>
#include <charconv>

namespace rille::net {

namespace {

constexpr std::size_t validator_bytes_max = 1024;

std::string sendable(std::string validator) {
  const bool plain =
      std::all_of(validator.begin(), validator.end(), [](unsigned char c) { return c >= 0x20 && c != 0x7f; });
  return plain && validator.size() <= validator_bytes_max ? validator : std::string();
}

}  // namespace

std::int64_t size_in(std::string_view digits) {
  std::int64_t out = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  const bool all = failed == std::errc() && end == digits.data() + digits.size() && !digits.empty();
  return all && out >= 0 && out < (std::int64_t{1} << 53) ? out : -1;
}

ContentRange content_range(std::string_view header) {
  const std::size_t dash = header.find('-'), slash = header.find('/');
  if (!header.starts_with("bytes ") || dash == header.npos || slash == header.npos || dash > slash) return {};
  return {size_in(header.substr(6, dash - 6)), size_in(header.substr(slash + 1))};
}

std::string validator_of(const HttpResponse& head) {
  const std::string etag = head.header("etag");
  return sendable(etag.empty() ? head.header("last-modified") : etag);
}

std::string strong_validator_of(const HttpResponse& head) {
  const std::string etag = head.header("etag");
  return sendable(etag.empty() || etag.starts_with("W/") ? head.header("last-modified") : etag);
}

}  // namespace rille::net
