// AWS's credentials, as its command line finds them: environment, profile (keys, roles, SSO, programs), web identity,
// container, instance.
#pragma once

#include "runtime/core/base/value.hpp"
#include "runtime/workflow/provider/cloud/credentials.hpp"

namespace rille::provider::aws {

// `region`: of the STS that is asked for roles. `endpoints`: "sts", "sso", "oidc", "container", "metadata"
// ("": none is asked).
cloud::CredentialChain key_chain(Loop& loop, const Value& endpoints, const std::string& region);

}  // namespace rille::provider::aws
