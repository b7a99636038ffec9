// Tencent Cloud credentials, searched in the order of Tencent's tools: environment, TKE's OIDC, the files of the SDKs
// and of the command line, the role of this machine. Loop thread only.
#pragma once

#include "runtime/core/base/value.hpp"
#include "runtime/core/net/credentials/chain.hpp"

namespace rille::net::tencent {

// `region` is sent to STS. `endpoints`: URLs that replace the usual ones, under "sts" and "metadata"; "" skips that
// source.
CredentialChain key_chain(Loop& loop, const Value& endpoints, const std::string& region);

}  // namespace rille::net::tencent
