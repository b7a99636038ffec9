// Alibaba Cloud's signatures: ACS3 for its products' APIs, the older RPC one, and OSS's two.
// https://www.alibabacloud.com/help/en/sdk/product-overview/v3-request-structure-and-signature
// Pure functions; any thread.
#pragma once

#include "runtime/core/net/sign/parts.hpp"

namespace rille::net {

// What is called, of which version of the product; the nonce must differ in each attempt.
struct AlibabaCall {
  std::string action, version, nonce;
};

// ACS3-HMAC-SHA256. All parameters are in the query.
Parts sign_alibaba(Parts parts, const Credentials& who, const AlibabaCall& call, std::int64_t wall_us);
// The value of Authorization for headers that are all there; `payload`: the body's SHA-256.
std::string alibaba_authorization(const Parts& parts, const Credentials& who, const Canonical& signed_headers,
                                  const std::string& payload);
// Version 1 of RPC calls, HMAC-SHA1: everything goes into the query.
Parts sign_alibaba_rpc(Parts parts, const Credentials& who, const AlibabaCall& call, std::int64_t wall_us);
std::string alibaba_rpc_signature(const std::string& method, const Query& query, const std::string& secret);

// OSS, version 4. `bucket` is part of what is signed, whether the host names it or the path does; the parts' path is
// that of the key alone. `also`: headers to sign beside Content-Type, Content-MD5 and x-oss-*.
struct OssScope {
  std::string region, bucket;     // "cn-hangzhou", without "oss-"
  std::vector<std::string> also;  // in lower case
};
Parts sign_oss(Parts parts, const Credentials& who, const OssScope& scope, std::int64_t wall_us);
// Version 1: Date, or x-oss-date in its place, has to be among the headers.
Parts sign_oss_v1(Parts parts, const Credentials& who, const std::string& bucket);

}  // namespace rille::net
