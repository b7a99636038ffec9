#include "runtime/core/store/objects/xml_store.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/store/objects/answers.hpp"

namespace rille::objects {

namespace {

constexpr std::int64_t presign_max_s = 604'800;

bool is_region(const std::string& name) {
  return !name.empty() && name.size() <= 40 && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
}

std::string parts_xml(const std::vector<Part>& parts) {
  std::string out = "<CompleteMultipartUpload>";
  for (const Part& part : parts)
    out += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", part.number, xml_escaped(part.mark));
  return out + "</CompleteMultipartUpload>";
}

}  // namespace

std::unique_ptr<XmlStore> XmlStore::open(const ObjectUrl& url, const StoreSetup& setup, Dialect dialect,
                                         net::CredentialChain chain) {
  const auto region = std::make_shared<std::string>(url.region);
  RestSetup own;
  own.provider = dialect.provider;
  own.read_error = read_xml_error;
  own.sign = [sign = dialect.sign, region](net::Parts parts, const net::Credentials& who, std::int64_t wall_us,
                                           std::int64_t) -> Result<net::Parts> {
    return sign(std::move(parts), who, *region, wall_us);
  };
  own.follow = [region](const std::string& told) {
    if (!is_region(told) || told == *region) return false;
    *region = told;
    return true;
  };
  return std::unique_ptr<XmlStore>(
      new XmlStore(url, setup, std::move(own), std::move(dialect), region, std::move(chain)));
}

net::Parts XmlStore::xml_parts(const char* method, const std::string& key) const {
  net::Parts parts;
  parts.method = method;
  parts.scheme = dialect_.web;
  parts.host = dialect_.host(url_.bucket, *region_);
  parts.path = (dialect_.bucket_in_path ? "/" + url_.bucket : "") + "/" + net::encode_path(key);
  return parts;
}

net::Parts XmlStore::object_parts(const char* method, const std::string& key, const std::string& version) const {
  net::Parts parts = xml_parts(method, key);
  if (!version.empty()) parts.set_header("If-Match", version);
  return parts;
}

Result<net::Headers> XmlStore::condition(const PutRequest& request, bool completes) const {
  const bool absent_is = completes ? dialect_.traits.completes_if_absent : dialect_.traits.puts_if_absent;
  const bool match_is = completes ? dialect_.traits.completes_if_match : dialect_.traits.puts_if_match;
  if ((request.if_absent && !absent_is) || (!request.if_match.empty() && !match_is))
    return make_error(ErrorKind::invalid,
                      fmt::format("{}:// cannot {} an object only {}", dialect_.scheme, completes ? "complete" : "put",
                                  request.if_absent ? "if there is none" : "in place of one version"),
                      "write it under a new key, or without the condition");
  net::Headers out;
  if (request.if_absent && dialect_.conditions == Dialect::Conditions::forbid_overwrite)
    out.emplace_back("x-" + dialect_.scheme + "-forbid-overwrite", "true");
  else if (request.if_absent) out.emplace_back("If-None-Match", "*");
  if (!request.if_match.empty()) out.emplace_back("If-Match", request.if_match);
  return out;
}

Async<ListPage> XmlStore::list(ListRequest request, CancelToken token) {
  const auto list_parts = [this, request] {
    net::Parts parts = xml_parts("GET", "");
    if (!dialect_.marker_lists) parts.query.emplace_back("list-type", "2");
    parts.query.emplace_back("encoding-type", "url");
    parts.query.emplace_back("max-keys", std::to_string(std::clamp(request.count_max, 1, 1000)));
    if (!request.prefix.empty()) parts.query.emplace_back("prefix", request.prefix);
    if (!request.delimiter.empty()) parts.query.emplace_back("delimiter", request.delimiter);
    if (!request.token.empty())
      parts.query.emplace_back(dialect_.marker_lists ? "marker" : "continuation-token", request.token);
    return parts;
  };
  RILLE_CO_TRY(const net::HttpResponse answer, co_await rest_.send(call_of("list", request.prefix, list_parts), token));
  co_return read_s3_list(answer.body, dialect_.marker_lists);
}

Async<std::string> XmlStore::put(std::string key, Body body, PutRequest request, CancelToken token) {
  RILLE_CO_CHECK(check_key(key));
  RILLE_CO_TRY(const net::Headers conditions, condition(request, false));
  const auto put_parts = [this, key, request, conditions] {
    net::Parts parts = xml_parts("PUT", key);
    parts.headers = conditions;
    if (!request.content_type.empty()) parts.set_header("Content-Type", request.content_type);
    return parts;
  };
  Call call = conditional(call_of("put", key, put_parts), request);
  call.body = &body;
  RILLE_CO_TRY(const net::HttpResponse answer, co_await rest_.send(std::move(call), token));
  co_return version_in(answer);
}

Async<std::string> XmlStore::begin_parts(std::string key, std::string content_type, CancelToken token) {
  RILLE_CO_CHECK(check_key(key));
  const auto begin = [this, key, content_type] {
    net::Parts parts = xml_parts("POST", key);
    parts.query.emplace_back("uploads", std::nullopt);
    if (!content_type.empty()) parts.set_header("Content-Type", content_type);
    return parts;
  };
  RILLE_CO_TRY(const net::HttpResponse answer, co_await rest_.send(call_of("begin", key, begin), token));
  std::string upload = text_in_xml(answer.body, "UploadId");
  if (upload.empty()) co_return bad_answer("it does not name the upload of " + address(key));
  co_return upload;
}

Async<Part> XmlStore::put_part(std::string key, std::string upload, int number, Body body, CancelToken token) {
  RILLE_CO_CHECK(check_key(key));
  const auto part_parts = [this, key, upload, number] {
    net::Parts parts = xml_parts("PUT", key);
    parts.query = {{"partNumber", std::to_string(number)}, {"uploadId", upload}};
    return parts;
  };
  Call call = call_of("put part", key, part_parts);
  call.body = &body;
  RILLE_CO_TRY(const net::HttpResponse answer, co_await rest_.send(std::move(call), token));
  Part part;
  part.number = number;
  part.mark = answer.header("etag");
  part.size_bytes = body.bytes();
  if (part.mark.empty()) co_return bad_answer(fmt::format("it has no ETag for part {} of {}", number, address(key)));
  co_return part;
}

Async<std::string> XmlStore::complete_parts(std::string key, std::string upload, std::vector<Part> parts,
                                            PutRequest request, CancelToken token) {
  RILLE_CO_CHECK(check_key(key));
  RILLE_CO_TRY(const net::Headers conditions, condition(request, true));
  std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.number < b.number; });
  std::int64_t bytes = 0;
  for (const Part& part : parts) bytes += part.size_bytes;
  const auto complete = [this, key, upload, conditions, xml = parts_xml(parts)] {
    net::Parts all = xml_parts("POST", key);
    all.query = {{"uploadId", upload}};
    all.headers = conditions;
    all.set_header("Content-Type", "application/xml");
    all.body = xml;
    return all;
  };
  Call call = call_of("complete", key, complete);
  call.refused_late = true;
  ObjectInfo info;
  RILLE_CO_TRY(const auto answer, co_await send_end(std::move(call), key, bytes, info, token));
  if (!answer) co_return std::move(info.version);
  std::string version = version_in(*answer);
  co_return version.empty() ? text_in_xml(answer->body, "ETag") : version;
}

Async<> XmlStore::abort_parts(std::string key, std::string upload, CancelToken token) {
  const auto abort_upload = [this, key, upload] {
    net::Parts parts = xml_parts("DELETE", key);
    parts.query = {{"uploadId", upload}};
    return parts;
  };
  Result<net::HttpResponse> answer = co_await rest_.send(call_of("abort", key, abort_upload), token);
  if (answer || is_missing(answer.error())) co_return success();
  co_return std::move(answer).error();
}

Result<net::Parts> XmlStore::presigned_parts(const PresignRequest& request) const {
  RILLE_CHECK(check_key(request.key));
  if (request.expires_s < 1 || request.expires_s > presign_max_s)
    return make_error(ErrorKind::invalid, fmt::format("an address cannot be signed for {} s", request.expires_s),
                      "from 1 s to 604800 s, which is a week");
  net::Parts parts = xml_parts(request.method == Method::get ? "GET" : "PUT", request.key);
  if (!request.upload.empty())
    parts.query = {{"partNumber", std::to_string(request.part)}, {"uploadId", request.upload}};
  return parts;
}

Async<Presigned> XmlStore::presign(PresignRequest request, CancelToken token) {
  RILLE_CO_TRY(net::Parts parts, presigned_parts(request));
  RILLE_CO_TRY(const net::FoundKeys found, co_await rest_.keys(token));
  Presigned out;
  out.url = dialect_.presign(std::move(parts), found.keys, *region_, rest_.now_us(), request.expires_s);
  out.expires_wall_us = rest_.now_us() + request.expires_s * 1'000'000;
  if (found.expires_wall_us > 0) out.expires_wall_us = std::min(out.expires_wall_us, found.expires_wall_us);
  co_return out;
}

}  // namespace rille::objects
