// Azure access tokens for one of three identities: an application (AZURE_TENANT_ID, AZURE_CLIENT_ID) that signs in by a
// secret (AZURE_CLIENT_SECRET), a certificate (AZURE_CLIENT_CERTIFICATE_PATH) or a workload's token
// (AZURE_FEDERATED_TOKEN_FILE); this machine; or the user logged in with `az`. Loop thread only.
#pragma once

#include "runtime/core/base/value.hpp"
#include "runtime/core/net/credentials/chain.hpp"

namespace rille::net::azure {

inline constexpr const char* workload_source = "the workload's token";
inline constexpr const char* certificate_source = "AZURE_CLIENT_CERTIFICATE_PATH";

// Selects one of the accounts that `az` is logged in to: by tenant, else by subscription; both empty: the default of
// `az`.
struct AzAccount {
  std::string tenant, subscription;
};

CredentialChain key_chain(Loop& loop, const Value& endpoints, AzAccount account);

// The token in the output of `az account get-access-token`. Error `auth`: the output lacks the token or its expiry.
Result<FoundKeys> read_az_token(const Value& printed);

// The name of the user or application in an access token; "": the token names none.
std::string owner_of(const std::string& access_token);

}  // namespace rille::net::azure
