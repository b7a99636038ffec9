// Profiles of ~/.aws/config and ~/.aws/credentials, and the roles that they assume. Loop thread only.
#pragma once

#include <memory>
#include <string>

#include "runtime/core/net/credentials/lent_keys.hpp"

namespace rille::net::aws {

// Field names in the JSON of the instance metadata service.
inline constexpr KeyNames key_names{"AccessKeyId", "SecretAccessKey", "Token", "Expiration"};

struct Places {
  Loop& loop;
  std::string region, sts;  // sts: URL of STS; "": the region's endpoint
  std::string container;
  MachineKeys machine;
  std::string portal = {}, oidc = {};  // service URLs of IAM Identity Center; "": the region's endpoints
};
using At = std::shared_ptr<const Places>;

std::string profile_name();  // the profile in AWS_DEFAULT_PROFILE or AWS_PROFILE, else "default"
std::string usual_region();  // from AWS_REGION, AWS_DEFAULT_REGION or the profile; else us-east-1

// profile_role: keys of the role that the profile assumes (role_arn). profile_keys: keys that the profile itself gives
// by SSO, as plain keys or by credential_process.
Async<std::optional<FoundKeys>> profile_role(At at, CancelToken token);
Async<std::optional<FoundKeys>> profile_keys(At at, CancelToken token);
// Keys of AWS_ROLE_ARN, for the token in AWS_WEB_IDENTITY_TOKEN_FILE. Kubernetes sets both variables.
Async<std::optional<FoundKeys>> web_identity(At at, CancelToken token);
Async<std::optional<FoundKeys>> container_keys(Loop& loop, std::string base, CancelToken token);

// Keys in the output of a credential_process. Error `auth`: unknown version, no keys, or expired keys.
Result<FoundKeys> read_process_keys(const Value& printed, const std::string& profile, std::int64_t now_us);

}  // namespace rille::net::aws
