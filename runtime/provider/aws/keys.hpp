// AWS's credentials, as its command line finds them: environment, profile, container, instance.
#pragma once

#include "runtime/provider/cloud/credentials.hpp"

namespace rille::provider::aws {

// `metadata`: the address of the instance metadata service; "": none is asked.
cloud::CredentialChain key_chain(Loop& loop, const std::string& metadata);

}  // namespace rille::provider::aws
