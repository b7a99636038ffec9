// Alibaba Cloud's signatures: ACS3 for its products' APIs, the older RPC style, and both versions of OSS.
// https://www.alibabacloud.com/help/en/sdk/product-overview/v3-request-structure-and-signature
// Pure functions; any thread.
#pragma once

#include "runtime/core/net/sign/parts.hpp"

namespace rille::net {

// The action, the API version, and a nonce that must differ in each attempt.
struct AlibabaCall {
  std::string action, version, nonce;
};

// ACS3-HMAC-SHA256. All parameters are in the query.
Parts sign_alibaba(Parts parts, const Credentials& who, const AlibabaCall& call, std::int64_t wall_us);
// The value of Authorization, from complete headers; `payload`: the body's SHA-256.
std::string alibaba_authorization(const Parts& parts, const Credentials& who, const Canonical& signed_headers,
                                  const std::string& payload);
// RPC style, version 1, HMAC-SHA1: all parameters are in the query.
Parts sign_alibaba_rpc(Parts parts, const Credentials& who, const AlibabaCall& call, std::int64_t wall_us);
std::string alibaba_rpc_signature(const std::string& method, const Query& query, const std::string& secret);

// OSS, version 4. `bucket` is signed whether the host or the path names it; the path of `parts` is that of the object
// alone. `also`: headers to sign besides Content-Type, Content-MD5 and x-oss-*.
struct OssScope {
  std::string region, bucket;     // "cn-hangzhou", without "oss-"
  std::vector<std::string> also;  // in lower case
};
Parts sign_oss(Parts parts, const Credentials& who, const OssScope& scope, std::int64_t wall_us);
// OSS, version 1: the headers must contain Date or x-oss-date.
Parts sign_oss_v1(Parts parts, const Credentials& who, const std::string& bucket);

}  // namespace rille::net
