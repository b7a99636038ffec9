// IAM Identity Center (SSO): after `aws sso login`, the keys of a role. The login token is in ~/.aws/sso/cache, where
// Amazon's command line leaves it. A renewed token is written back there, as Amazon's own tools do, because the refresh
// token may change with it. Loop thread only.
#pragma once

#include <optional>
#include <string>

#include "runtime/core/net/credentials/aws/profiles.hpp"

namespace rille::net::aws {

// A profile's SSO settings.
struct Sso {
  std::string profile, session, start_url, region, account, role;  // session "": the older form without an sso-session
};
// Nothing: the profile does not use SSO. config: a field is missing, or profile and session disagree.
Result<std::optional<Sso>> sso_of(const Ini& all, const std::string& profile);

// The file that `aws sso login` writes.
struct SsoLogin {
  std::string token, refresh_token, client_id, client_secret;
  std::int64_t ends_wall_us = 0, client_ends_wall_us = 0;
  bool renewable(std::int64_t now_us) const;
};
// integrity: not such a file.
Result<SsoLogin> read_sso_login(const Value& document);

// Keys of the role. auth: not logged in, the login has expired, or it does not include the role.
Async<FoundKeys> sso_keys(At at, Sso sso, CancelToken token);

}  // namespace rille::net::aws
