// Tencent Cloud's keys, as its command line and SDKs find them: environment, TKE's OIDC, the files of both, the role of
// the machine. Loop thread only.
#pragma once

#include "runtime/core/base/value.hpp"
#include "runtime/workflow/provider/cloud/credentials.hpp"

namespace rille::provider::tencent {

// `region`: that the STS is told. `endpoints`: "sts", "metadata" ("": none is asked).
cloud::CredentialChain key_chain(Loop& loop, const Value& endpoints, const std::string& region);

}  // namespace rille::provider::tencent
