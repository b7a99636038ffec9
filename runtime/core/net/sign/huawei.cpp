#include "runtime/core/net/sign/huawei.hpp"

#include <algorithm>
#include <utility>

#include "runtime/core/base/id.hpp"
#include "runtime/core/net/sign/aws.hpp"

namespace rille::net {

namespace {

Canonical huawei_headers(const Parts& parts) {
  Canonical headers = canonical_headers(parts);
  std::erase_if(headers, [](const auto& header) { return header.first.find('_') != std::string::npos; });
  return headers;
}

AwsScope obs_scope(const std::string& region) {
  AwsScope scope{region, "s3"};
  scope.unsigned_payload = true;
  return scope;
}

}  // namespace

std::string huawei_canonical_sha256(const Parts& parts) {
  const Canonical headers = huawei_headers(parts);
  const std::string path = encode_path(percent_decode(parts.path));
  Query query = parts.query;
  std::sort(query.begin(), query.end());  // this signature wants parameters sorted before they are encoded
  return sha256_hex(parts.method + "\n" + path + (path.ends_with('/') ? "" : "/") + "\n" + join_query(query, "=") +
                    "\n" + header_lines(headers) + "\n" + header_names(headers) + "\n" + sha256_hex(parts.body));
}

Parts sign_huawei(Parts parts, const Credentials& who, std::int64_t wall_us, const HuaweiScope& scope) {
  const std::string time = compact_time(wall_us);
  parts.set_header("X-Sdk-Date", time);
  if (!who.token.empty()) parts.set_header("X-Security-Token", who.token);
  const bool derived = !scope.service.empty();
  const std::string algorithm = derived ? "V11-HMAC-SHA256" : "SDK-HMAC-SHA256";
  const std::string where = time.substr(0, 8) + "/" + scope.region + "/" + scope.service;
  std::string key = who.secret;
  if (derived) {  // derive a key for this day, region and service: one block of HKDF (RFC 5869), salted with the id
    key = hex(hmac_sha256(hmac_sha256(who.id, who.secret), where + "\x01"));
  }
  const std::string text =
      algorithm + "\n" + time + "\n" + (derived ? where + "\n" : "") + huawei_canonical_sha256(parts);
  parts.set_header("Authorization", algorithm + (derived ? " Credential=" : " Access=") + who.id +
                                        (derived ? "/" + where : "") +
                                        ", SignedHeaders=" + header_names(huawei_headers(parts)) +
                                        ", Signature=" + hex(hmac_sha256(key, text)));
  return parts;
}

Parts sign_obs(Parts parts, const Credentials& who, const std::string& region, std::int64_t wall_us) {
  return sign_aws(std::move(parts), who, obs_scope(region), wall_us);
}

std::string presign_obs(Parts parts, Credentials who, const std::string& region, std::int64_t wall_us,
                        std::int64_t expires_s) {
  if (!who.token.empty()) parts.query.emplace_back("x-amz-security-token", std::exchange(who.token, ""));
  return presign_aws(std::move(parts), who, obs_scope(region), wall_us, expires_s);
}

}  // namespace rille::net
