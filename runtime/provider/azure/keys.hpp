// Where Azure's access tokens come from: an application (AZURE_TENANT_ID, AZURE_CLIENT_ID) by its secret
// (AZURE_CLIENT_SECRET) or by the token of a workload (AZURE_FEDERATED_TOKEN_FILE), who is logged in with `az`, or the
// identity of the machine that we run on. Loop thread only.
#pragma once

#include "runtime/base/value.hpp"
#include "runtime/provider/cloud/credentials.hpp"

namespace rille::provider::azure {

inline constexpr const char* workload_source = "the workload's token";

cloud::CredentialChain key_chain(Loop& loop, const Value& endpoints);

// Whose an access token is, from what stands in it; "": it does not tell.
std::string owner_of(const std::string& access_token);

}  // namespace rille::provider::azure
