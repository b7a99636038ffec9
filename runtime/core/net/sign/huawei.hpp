// Huawei Cloud's signatures: SDK-HMAC-SHA256, and V11, whose key is derived for one region and service.
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

}  // namespace rille::net
