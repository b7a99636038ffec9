#include "runtime/core/net/sign/huawei.hpp"

#include <algorithm>

#include "runtime/core/base/id.hpp"

namespace rille::net {

namespace {

Canonical huawei_headers(const Parts& parts) {
  Canonical headers = canonical_headers(parts);
  std::erase_if(headers, [](const auto& header) { return header.first.find('_') != std::string::npos; });
  return headers;
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

}  // namespace rille::net
