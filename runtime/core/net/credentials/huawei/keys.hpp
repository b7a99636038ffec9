// Huawei Cloud credentials, searched in the order of Huawei's SDKs: an identity provider's token, environment, the file
// of the SDKs, the agency of this machine. Loop thread only.
#pragma once

#include "runtime/core/base/value.hpp"
#include "runtime/core/net/credentials/chain.hpp"

namespace rille::net::huawei {

// `region` selects the IAM endpoint that exchanges an identity provider's token. `endpoints`: URLs that replace the
// usual ones, under "iam" and "metadata"; "" skips that source.
CredentialChain key_chain(Loop& loop, const Value& endpoints, const std::string& region);

// The domain name of a region's services, such as "myhuaweicloud.com".
std::string domain_of(const std::string& region);

}  // namespace rille::net::huawei
