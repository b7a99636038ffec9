// Huawei Cloud credentials, in the order of its SDKs: an identity provider's token, environment, the SDKs' file, the
// agency of this machine. Loop thread only.
#pragma once

#include "runtime/core/base/value.hpp"
#include "runtime/core/net/credentials/chain.hpp"

namespace rille::net::huawei {

// `region`: selects the IAM endpoint that exchanges an identity provider's token. `endpoints`: overrides of "iam" and
// "metadata"; "" skips that source.
CredentialChain key_chain(Loop& loop, const Value& endpoints, const std::string& region);

// The domain of a region's services.
std::string domain_of(const std::string& region);

}  // namespace rille::net::huawei
