// Alibaba Cloud's signatures: ACS3 for its products' APIs, the older RPC style, and versions 1 and 4 of OSS.
// https://www.alibabacloud.com/help/en/sdk/product-overview/v3-request-structure-and-signature
// Pure functions; any thread.
#pragma once

#include "runtime/core/net/sign/parts.hpp"

namespace rille::net {

// A call's action and API version, and a nonce that must differ in each attempt.
struct AlibabaCall {
  std::string action, version, nonce;
};

// Signs with ACS3-HMAC-SHA256. All parameters are in the query.
Parts sign_alibaba(Parts parts, const Credentials& who, const AlibabaCall& call, std::int64_t wall_us);
// The value of the Authorization header. `parts` has all headers already; `payload`: the body's SHA-256.
std::string alibaba_authorization(const Parts& parts, const Credentials& who, const Canonical& signed_headers,
                                  const std::string& payload);
// Signs in RPC style, version 1, with HMAC-SHA1. All parameters are in the query.
Parts sign_alibaba_rpc(Parts parts, const Credentials& who, const AlibabaCall& call, std::int64_t wall_us);
std::string alibaba_rpc_signature(const std::string& method, const Query& query, const std::string& secret);

// OSS, version 4. `bucket` is signed whether the host or the path names it; the path of `parts` contains only the
// object's name. `also`: headers to sign besides Content-Type, Content-MD5 and x-oss-*.
struct OssScope {
  std::string region, bucket;     // region such as "cn-hangzhou", without the prefix "oss-"
  std::vector<std::string> also;  // header names in lower case
};
Parts sign_oss(Parts parts, const Credentials& who, const OssScope& scope, std::int64_t wall_us);
// A URL that anyone can use without credentials for `expires_s` seconds, at most 604,800. The request must carry the
// headers of `parts`.
std::string presign_oss(Parts parts, const Credentials& who, const OssScope& scope, std::int64_t wall_us,
                        std::int64_t expires_s);
// Signs with OSS version 1; the headers must contain Date or x-oss-date.
Parts sign_oss_v1(Parts parts, const Credentials& who, const std::string& bucket);

}  // namespace rille::net
