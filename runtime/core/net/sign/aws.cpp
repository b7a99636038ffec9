#include "runtime/core/net/sign/aws.hpp"

#include "runtime/core/base/id.hpp"

namespace rille::net {

namespace {

constexpr const char* algorithm = "AWS4-HMAC-SHA256";

std::string scope_text(const AwsScope& scope, const std::string& time) {
  return time.substr(0, 8) + "/" + scope.region + "/" + scope.service + "/aws4_request";
}

std::string signing_key(const Credentials& who, const AwsScope& scope, const std::string& time) {
  const std::string date = hmac_sha256("AWS4" + who.secret, time.substr(0, 8));
  return hmac_sha256(hmac_sha256(hmac_sha256(date, scope.region), scope.service), "aws4_request");
}

// Resolves "." and ".." in a path and joins repeated slashes.
std::string normalized(std::string_view path) {
  std::vector<std::string_view> kept;
  bool ends_open = path.ends_with('/');
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view segment = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (segment == ".." && !kept.empty()) kept.pop_back();
    else if (!segment.empty() && segment != "." && segment != "..") kept.push_back(segment);
  }
  std::string out = "/";
  for (const auto& segment : kept) (out += segment) += '/';
  if (!ends_open && !kept.empty()) out.pop_back();
  return out;
}

Canonical signed_headers(const Parts& parts) { return canonical_headers(parts, {.one_space = true}); }

// Encodes each segment of the path separately, so that "%2F" within a name is kept.
std::string encoded_once(std::string_view path) {
  std::string out;
  for (;;) {
    const std::size_t end = std::min(path.find('/'), path.size());
    out += percent_encode(percent_decode(path.substr(0, end)));
    if (end == path.size()) return out;
    out += '/';
    path.remove_prefix(end + 1);
  }
}

std::string canonical_path(const Parts& parts, const AwsScope& scope) {
  if (scope.s3()) return encoded_once(parts.path);
  return encode_path(scope.normalize_path ? normalized(parts.path) : parts.path);
}

std::string signature_of(const Credentials& who, const AwsScope& scope, const std::string& time,
                         const std::string& canonical) {
  const std::string text = std::string(algorithm) + "\n" + time + "\n" + scope_text(scope, time) + "\n" + canonical;
  return hex(hmac_sha256(signing_key(who, scope, time), text));
}

std::string payload_of(const Parts& parts, const AwsScope& scope) {
  if (const std::string* told = parts.find_header("x-amz-content-sha256")) return *told;
  return scope.s3() && scope.unsigned_payload ? "UNSIGNED-PAYLOAD" : sha256_hex(parts.body);
}

}  // namespace

std::string aws_canonical_sha256(const Parts& parts, const AwsScope& scope, const Canonical& headers,
                                 const std::string& payload) {
  return sha256_hex(parts.method + "\n" + canonical_path(parts, scope) + "\n" + canonical_query(parts.query) + "\n" +
                    header_lines(headers) + "\n" + header_names(headers) + "\n" + payload);
}

Parts sign_aws(Parts parts, const Credentials& who, const AwsScope& scope, std::int64_t wall_us) {
  const std::string time = compact_time(wall_us), payload = payload_of(parts, scope);
  parts.set_header("X-Amz-Date", time);
  if (scope.s3()) parts.set_header("x-amz-content-sha256", payload);
  if (!who.token.empty() && scope.sign_token) parts.set_header("X-Amz-Security-Token", who.token);
  const Canonical headers = signed_headers(parts);
  const std::string canonical = aws_canonical_sha256(parts, scope, headers, payload);
  parts.set_header("Authorization", std::string(algorithm) + " Credential=" + who.id + "/" + scope_text(scope, time) +
                                        ", SignedHeaders=" + header_names(headers) +
                                        ", Signature=" + signature_of(who, scope, time, canonical));
  if (!who.token.empty() && !scope.sign_token) parts.set_header("X-Amz-Security-Token", who.token);
  return parts;
}

std::string presign_aws(Parts parts, const Credentials& who, const AwsScope& scope, std::int64_t wall_us,
                        std::int64_t expires_s) {
  const std::string time = compact_time(wall_us);
  const Canonical headers = signed_headers(parts);
  parts.query.insert(parts.query.end(), {{"X-Amz-Algorithm", algorithm},
                                         {"X-Amz-Credential", who.id + "/" + scope_text(scope, time)},
                                         {"X-Amz-Date", time},
                                         {"X-Amz-Expires", std::to_string(expires_s)},
                                         {"X-Amz-SignedHeaders", header_names(headers)}});
  if (!who.token.empty() && scope.sign_token) parts.query.emplace_back("X-Amz-Security-Token", who.token);
  const std::string payload = scope.s3() ? "UNSIGNED-PAYLOAD" : sha256_hex(parts.body);
  const std::string canonical = aws_canonical_sha256(parts, scope, headers, payload);
  if (!who.token.empty() && !scope.sign_token) parts.query.emplace_back("X-Amz-Security-Token", who.token);
  parts.query.emplace_back("X-Amz-Signature", signature_of(who, scope, time, canonical));
  return parts.url();
}

std::string aws_chunk_signature(const Credentials& who, const AwsScope& scope, std::int64_t wall_us,
                                const std::string& previous, std::string_view chunk) {
  const std::string time = compact_time(wall_us);
  const std::string text = std::string(algorithm) + "-PAYLOAD\n" + time + "\n" + scope_text(scope, time) + "\n" +
                           previous + "\n" + sha256_hex("") + "\n" + sha256_hex(chunk);
  return hex(hmac_sha256(signing_key(who, scope, time), text));
}

}  // namespace rille::net
