// Where Azure's access tokens come from: an application (AZURE_TENANT_ID, AZURE_CLIENT_ID) by its secret
// (AZURE_CLIENT_SECRET), its certificate (AZURE_CLIENT_CERTIFICATE_PATH) or the token of a workload
// (AZURE_FEDERATED_TOKEN_FILE), the identity of the machine that we run on, or who is logged in with `az`.
// Loop thread only.
#pragma once

#include "runtime/core/base/value.hpp"
#include "runtime/workflow/provider/cloud/credentials.hpp"

namespace rille::provider::azure {

inline constexpr const char* workload_source = "the workload's token";
inline constexpr const char* certificate_source = "AZURE_CLIENT_CERTIFICATE_PATH";

// Which of the accounts that `az` is logged in to: that of the tenant, else that of the subscription, else its own
// choice.
struct AzAccount {
  std::string tenant, subscription;
};

cloud::CredentialChain key_chain(Loop& loop, const Value& endpoints, AzAccount account);

// What `az account get-access-token` prints. auth: no token, or no end of it.
Result<cloud::FoundKeys> read_az_token(const Value& printed);

// Whose an access token is, from what stands in it; "": it does not tell.
std::string owner_of(const std::string& access_token);

}  // namespace rille::provider::azure
