// Huawei Cloud's keys, as its SDKs find them: environment, an identity provider's token, the SDKs' file, the agency of
// the machine. Loop thread only.
#pragma once

#include "runtime/core/base/value.hpp"
#include "runtime/workflow/provider/cloud/credentials.hpp"

namespace rille::provider::huawei {

// `region`: of the IAM that takes an identity provider's token. `endpoints`: "iam", "metadata" ("": none is asked).
cloud::CredentialChain key_chain(Loop& loop, const Value& endpoints, const std::string& region);

}  // namespace rille::provider::huawei
