#include "runtime/core/net/sign/alibaba.hpp"

#include <algorithm>

#include "runtime/core/base/base64.hpp"
#include "runtime/core/base/id.hpp"
#include "runtime/core/base/time.hpp"

namespace rille::net {

namespace {

Canonical only(Canonical headers, const auto& wanted) {
  std::erase_if(headers, [&](const auto& header) { return !wanted(header.first); });
  return headers;
}

// Query parameters that OSS signature version 1 signs: those that select a subresource.
constexpr std::string_view oss_parts[] = {"acl",
                                          "uploads",
                                          "location",
                                          "cors",
                                          "logging",
                                          "website",
                                          "referer",
                                          "lifecycle",
                                          "delete",
                                          "append",
                                          "tagging",
                                          "objectMeta",
                                          "uploadId",
                                          "partNumber",
                                          "security-token",
                                          "position",
                                          "response-content-type",
                                          "response-content-language",
                                          "response-expires",
                                          "response-cache-control",
                                          "response-content-disposition",
                                          "response-content-encoding",
                                          "versioning",
                                          "versionId",
                                          "versions",
                                          "restore",
                                          "symlink",
                                          "continuation-token"};

// The headers that version 4 of OSS signs, and the names of those that it would not sign by itself.
struct OssSigned {
  Canonical headers;
  std::string also;
};

OssSigned oss_signed(const Parts& parts, const OssScope& scope) {
  const auto is_also = [&](const std::string& name) {
    return std::find(scope.also.begin(), scope.also.end(), name) != scope.also.end();
  };
  OssSigned out;
  out.headers = only(canonical_headers(parts), [&](const std::string& name) {
    return name == "content-type" || name == "content-md5" || name.starts_with("x-oss-") || is_also(name);
  });
  out.also = header_names(only(out.headers, is_also));
  return out;
}

std::string oss_scope(const OssScope& scope, const std::string& time) {
  return time.substr(0, 8) + "/" + scope.region + "/oss/aliyun_v4_request";
}

constexpr const char* oss_payload = "UNSIGNED-PAYLOAD";

// OSS signs "k=" as "k" (alibabacloud-oss-v2 1.4.1, signer/v4.py).
std::string oss_query(Query query) {
  for (auto& [key, value] : query)
    if (value && value->empty()) value.reset();
  return canonical_query(query, "");
}

std::string oss_signature(const Parts& parts, const Credentials& who, const OssScope& scope, const OssSigned& what,
                          const std::string& time) {
  const std::string resource = (scope.bucket.empty() ? "" : "/" + scope.bucket) + percent_decode(parts.path);
  const std::string canonical = parts.method + "\n" + encode_path(resource) + "\n" + oss_query(parts.query) + "\n" +
                                header_lines(what.headers) + "\n" + what.also + "\n" + oss_payload;
  const std::string text = "OSS4-HMAC-SHA256\n" + time + "\n" + oss_scope(scope, time) + "\n" + sha256_hex(canonical);
  std::string key = "aliyun_v4" + who.secret;
  for (const std::string& part :
       {time.substr(0, 8), scope.region, std::string("oss"), std::string("aliyun_v4_request")})
    key = hmac_sha256(key, part);
  return hex(hmac_sha256(key, text));
}

}  // namespace

std::string alibaba_authorization(const Parts& parts, const Credentials& who, const Canonical& signed_headers,
                                  const std::string& payload) {
  const std::string path = parts.path.empty() ? "/" : encode_path(percent_decode(parts.path));
  const std::string canonical = parts.method + "\n" + path + "\n" + canonical_query(parts.query) + "\n" +
                                header_lines(signed_headers) + "\n" + header_names(signed_headers) + "\n" + payload;
  const std::string signature = hex(hmac_sha256(who.secret, "ACS3-HMAC-SHA256\n" + sha256_hex(canonical)));
  return "ACS3-HMAC-SHA256 Credential=" + who.id + ",SignedHeaders=" + header_names(signed_headers) +
         ",Signature=" + signature;
}

Parts sign_alibaba(Parts parts, const Credentials& who, const AlibabaCall& call, std::int64_t wall_us) {
  const std::string payload = sha256_hex(parts.body);
  parts.set_header("x-acs-action", call.action);
  parts.set_header("x-acs-version", call.version);
  parts.set_header("x-acs-date", format_utc(wall_us));
  parts.set_header("x-acs-signature-nonce", call.nonce);
  parts.set_header("x-acs-content-sha256", payload);
  if (!who.token.empty()) parts.set_header("x-acs-security-token", who.token);
  const Canonical headers = only(canonical_headers(parts, {.sorted_values = true}), [](const std::string& name) {
    return name == "host" || name == "content-type" || name.starts_with("x-acs-");
  });
  parts.set_header("Authorization", alibaba_authorization(parts, who, headers, payload));
  return parts;
}

std::string alibaba_rpc_signature(const std::string& method, const Query& query, const std::string& secret) {
  Query in_order = query;
  std::sort(in_order.begin(), in_order.end());  // this signature wants parameters sorted before they are encoded
  const std::string text = method + "&%2F&" + percent_encode(join_query(in_order, "="));
  return to_base64(hmac_sha1(secret + "&", text));
}

Parts sign_alibaba_rpc(Parts parts, const Credentials& who, const AlibabaCall& call, std::int64_t wall_us) {
  parts.query.insert(parts.query.end(), {{"Action", call.action},
                                         {"Version", call.version},
                                         {"AccessKeyId", who.id},
                                         {"SignatureMethod", "HMAC-SHA1"},
                                         {"SignatureVersion", "1.0"},
                                         {"SignatureNonce", call.nonce},
                                         {"Timestamp", format_utc(wall_us)}});
  if (!who.token.empty()) parts.query.emplace_back("SecurityToken", who.token);
  parts.query.emplace_back("Signature", alibaba_rpc_signature(parts.method, parts.query, who.secret));
  return parts;
}

Parts sign_oss(Parts parts, const Credentials& who, const OssScope& scope, std::int64_t wall_us) {
  const std::string time = compact_time(wall_us);
  parts.set_header("x-oss-date", time);
  parts.set_header("x-oss-content-sha256", oss_payload);
  if (!who.token.empty()) parts.set_header("x-oss-security-token", who.token);
  const OssSigned what = oss_signed(parts, scope);
  parts.set_header("Authorization", "OSS4-HMAC-SHA256 Credential=" + who.id + "/" + oss_scope(scope, time) +
                                        (what.also.empty() ? "" : ",AdditionalHeaders=" + what.also) +
                                        ",Signature=" + oss_signature(parts, who, scope, what, time));
  return parts;
}

std::string presign_oss(Parts parts, const Credentials& who, const OssScope& scope, std::int64_t wall_us,
                        std::int64_t expires_s) {
  const std::string time = compact_time(wall_us);
  const OssSigned what = oss_signed(parts, scope);
  parts.query.insert(parts.query.end(), {{"x-oss-signature-version", "OSS4-HMAC-SHA256"},
                                         {"x-oss-date", time},
                                         {"x-oss-expires", std::to_string(expires_s)},
                                         {"x-oss-credential", who.id + "/" + oss_scope(scope, time)}});
  if (!who.token.empty()) parts.query.emplace_back("x-oss-security-token", who.token);
  if (!what.also.empty()) parts.query.emplace_back("x-oss-additional-headers", what.also);
  parts.query.emplace_back("x-oss-signature", oss_signature(parts, who, scope, what, time));
  return parts.url();
}

Parts sign_oss_v1(Parts parts, const Credentials& who, const std::string& bucket) {
  if (!who.token.empty()) parts.set_header("x-oss-security-token", who.token);
  const auto value = [&](std::string_view name) {
    const std::string* found = parts.find_header(name);
    return found ? *found : std::string();
  };
  const Canonical own =
      only(canonical_headers(parts), [](const std::string& name) { return name.starts_with("x-oss-"); });
  Query named = parts.query;
  std::erase_if(named, [](const auto& pair) {
    return std::find(std::begin(oss_parts), std::end(oss_parts), pair.first) == std::end(oss_parts);
  });
  std::sort(named.begin(), named.end());
  std::string resource = (bucket.empty() ? "" : "/" + bucket) + percent_decode(parts.path);
  for (std::size_t i = 0; i < named.size(); ++i)
    resource += (i ? "&" : "?") + named[i].first + (named[i].second ? "=" + *named[i].second : "");
  const std::string date = parts.find_header("x-oss-date") ? value("x-oss-date") : value("date");
  const std::string text = parts.method + "\n" + value("content-md5") + "\n" + value("content-type") + "\n" + date +
                           "\n" + header_lines(own) + resource;
  parts.set_header("Authorization", "OSS " + who.id + ":" + to_base64(hmac_sha1(who.secret, text)));
  return parts;
}

}  // namespace rille::net
