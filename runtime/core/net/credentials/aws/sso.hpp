// IAM Identity Center (SSO): gets the keys of a role after the user has run `aws sso login`. That command leaves the
// login token in ~/.aws/sso/cache. A renewed token is written back to its file, as Amazon's tools do, because the
// refresh token may change with it. Loop thread only.
#pragma once

#include <optional>
#include <string>

#include "runtime/core/net/credentials/aws/profiles.hpp"

namespace rille::net::aws {

// A profile's SSO settings.
struct Sso {
  // session "": the profile has the older form without an sso-session
  std::string profile, session, start_url, region, account, role;
};
// Empty: the profile does not use SSO. Error `config`: a field is missing, or profile and session disagree.
Result<std::optional<Sso>> sso_of(const Ini& all, const std::string& profile);

// The content of the file that `aws sso login` writes.
struct SsoLogin {
  std::string token, refresh_token, client_id, client_secret;
  std::int64_t ends_wall_us = 0, client_ends_wall_us = 0;
  bool renewable(std::int64_t now_us) const;
};
// Error `integrity`: the document is not a login file.
Result<SsoLogin> read_sso_login(const Value& document);

// Keys of the role. Error `auth`: not logged in, the login has expired, or the user may not take the role.
Async<FoundKeys> sso_keys(At at, Sso sso, CancelToken token);

}  // namespace rille::net::aws
