// The profiles of ~/.aws/config and ~/.aws/credentials, and the roles that they take on. Loop thread only.
#pragma once

#include <memory>
#include <string>

#include "runtime/workflow/provider/cloud/lent_keys.hpp"

namespace rille::provider::aws {

// In the JSON that instances give; containers and credential_process have other words for some.
inline constexpr cloud::KeyNames key_names{"AccessKeyId", "SecretAccessKey", "Token", "Expiration"};

struct Places {
  Loop& loop;
  std::string region, sts;  // sts "": that of the region
  std::string container;
  cloud::MachineKeys machine;
  std::string portal = {}, oidc = {};  // of IAM Identity Center; "": those of its region
};
using At = std::shared_ptr<const Places>;

std::string profile_name();  // AWS_DEFAULT_PROFILE, AWS_PROFILE, or "default"
std::string usual_region();  // AWS_REGION, AWS_DEFAULT_REGION, that of the profile, us-east-1

// Of that profile: the role that it takes on (role_arn), and what it signs in by itself: SSO, its own keys, or those of
// its credential_process.
Async<std::optional<cloud::FoundKeys>> profile_role(At at, CancelToken token);
Async<std::optional<cloud::FoundKeys>> profile_keys(At at, CancelToken token);
// AWS_ROLE_ARN by the token in AWS_WEB_IDENTITY_TOKEN_FILE, as Kubernetes has it.
Async<std::optional<cloud::FoundKeys>> web_identity(At at, CancelToken token);
Async<std::optional<cloud::FoundKeys>> container_keys(Loop& loop, std::string base, CancelToken token);

// What a credential_process prints. auth: it is of another version, has no keys, or such whose time is over.
Result<cloud::FoundKeys> read_process_keys(const Value& printed, const std::string& profile, std::int64_t now_us);

}  // namespace rille::provider::aws
