// Huawei Cloud's signatures: SDK-HMAC-SHA256, and V11, whose key is derived for one region and service; and that of
// OBS, its object store, which is S3's.
// https://support.huaweicloud.com/intl/en-us/devg-apisign/api-sign-algorithm.html
// Pure functions; any thread.
#pragma once

#include "runtime/core/net/sign/parts.hpp"

namespace rille::net {

struct HuaweiScope {
  std::string region, service;  // both empty: use SDK-HMAC-SHA256; otherwise V11
};

// Signs every header except those with "_" in their names. With temporary keys it also adds X-Security-Token.
Parts sign_huawei(Parts parts, const Credentials& who, std::int64_t wall_us, const HuaweiScope& scope = {});
std::string huawei_canonical_sha256(const Parts& parts);

// Signs for OBS as its own SDKs do (esdk-obs-python 3.26, signature v4): as for S3, but never with a hash of the body,
// and with the name of a token in lower case in the query.
Parts sign_obs(Parts parts, const Credentials& who, const std::string& region, std::int64_t wall_us);
// A URL that anyone can use without credentials for `expires_s` seconds, at most 604,800.
std::string presign_obs(Parts parts, Credentials who, const std::string& region, std::int64_t wall_us,
                        std::int64_t expires_s);

}  // namespace rille::net
