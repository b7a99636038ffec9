// Where Azure's access tokens come from: an application's secret (AZURE_TENANT_ID, AZURE_CLIENT_ID,
// AZURE_CLIENT_SECRET), who is logged in with `az`, or the identity of the machine that we run on. Loop thread only.
#pragma once

#include "runtime/base/value.hpp"
#include "runtime/provider/cloud/credentials.hpp"

namespace rille::provider::azure {

cloud::CredentialChain key_chain(Loop& loop, const Value& endpoints);

// Whose an access token is, from what stands in it; "": it does not tell.
std::string owner_of(const std::string& access_token);

}  // namespace rille::provider::azure
