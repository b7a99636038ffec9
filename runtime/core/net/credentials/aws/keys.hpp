// AWS credentials, searched in the order of the AWS command line: environment, profile (keys, roles, SSO, programs),
// web identity, container, instance role.
#pragma once

#include "runtime/core/base/value.hpp"
#include "runtime/core/net/credentials/chain.hpp"

namespace rille::net::aws {

// `region` selects the STS endpoint. `endpoints`: URLs that replace the usual ones, under "sts", "sso", "oidc",
// "container" and "metadata"; "" skips that source.
CredentialChain key_chain(Loop& loop, const Value& endpoints, const std::string& region);

}  // namespace rille::net::aws
