// Azure Storage's signatures for blobs: SharedKey with the key of the account, and shared access signatures (SAS),
// which let anyone use one blob for a while.
// https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key
// https://learn.microsoft.com/rest/api/storageservices/create-service-sas, create-user-delegation-sas
// Pure functions; any thread.
#pragma once

#include "runtime/core/net/sign/parts.hpp"

namespace rille::net {

// The version of the REST interface that the signatures below are of; requests carry it as x-ms-version.
inline constexpr const char* azure_storage_version = "2021-12-02";

// Adds x-ms-date and Authorization. who.id: the account; who.secret: its key in base64. body_bytes: the length of the
// body that will be sent. Error `auth`: the key is not base64.
Result<Parts> sign_azure_blob(Parts parts, const Credentials& who, std::int64_t wall_us, std::int64_t body_bytes);

// What a SAS allows for one blob.
struct SasOf {
  std::string account, container, key;
  std::string rights;  // such as "r" or "cw"
  std::int64_t from_wall_us = 0, to_wall_us = 0;
  bool https_only = true;
};
// A key that Azure lends to a signed-in user, of the answer UserDelegationKey.
struct DelegationKey {
  std::string object_id, tenant_id, start, expiry, service, version, value;
};
// The query of a SAS: by the account's key (base64), or by a lent key. Error `auth`: the key is not base64.
Result<Query> azure_sas(const SasOf& of, const std::string& account_key);
Result<Query> azure_sas(const SasOf& of, const DelegationKey& lent);

}  // namespace rille::net
