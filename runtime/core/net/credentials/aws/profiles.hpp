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
  std::string region, sts;  // sts "": the region's endpoint
  std::string container;
  MachineKeys machine;
  std::string portal = {}, oidc = {};  // of IAM Identity Center; "": the region's endpoints
};
using At = std::shared_ptr<const Places>;

std::string profile_name();  // AWS_DEFAULT_PROFILE, AWS_PROFILE, or "default"
std::string usual_region();  // AWS_REGION, AWS_DEFAULT_REGION, the profile's region, or us-east-1

// Keys of the role that the profile assumes (role_arn), and the profile's own: SSO, keys, or credential_process.
Async<std::optional<FoundKeys>> profile_role(At at, CancelToken token);
Async<std::optional<FoundKeys>> profile_keys(At at, CancelToken token);
// AWS_ROLE_ARN with the token in AWS_WEB_IDENTITY_TOKEN_FILE, as Kubernetes sets them.
Async<std::optional<FoundKeys>> web_identity(At at, CancelToken token);
Async<std::optional<FoundKeys>> container_keys(Loop& loop, std::string base, CancelToken token);

// Keys in the output of a credential_process. auth: another version, no keys, or keys that have expired.
Result<FoundKeys> read_process_keys(const Value& printed, const std::string& profile, std::int64_t now_us);

}  // namespace rille::net::aws
