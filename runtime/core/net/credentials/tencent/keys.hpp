// Tencent Cloud credentials, in the order of its command line and SDKs: environment, TKE's OIDC, the files of both, the
// role of this machine. Loop thread only.
#pragma once

#include "runtime/core/base/value.hpp"
#include "runtime/core/net/credentials/chain.hpp"

namespace rille::net::tencent {

// `region`: sent to STS. `endpoints`: overrides of "sts" and "metadata"; "" skips that source.
CredentialChain key_chain(Loop& loop, const Value& endpoints, const std::string& region);

}  // namespace rille::net::tencent
