// IAM Identity Center (SSO): who has signed in by `aws sso login` gets the keys of a role. That sign-in lies in
// ~/.aws/sso/cache, where Amazon's command line leaves it. One that Rille renews is written back there, as Amazon's own
// tools do, for the refresh token may be another one then. Loop thread only.
#pragma once

#include <optional>
#include <string>

#include "runtime/workflow/provider/aws/profiles.hpp"

namespace rille::provider::aws {

// How a profile signs in.
struct Sso {
  std::string profile, session, start_url, region, account, role;  // session "": the older way, without one
};
// Nothing: the profile does not sign in so. config: something is missing, or profile and session do not agree.
Result<std::optional<Sso>> sso_of(const cloud::Ini& all, const std::string& profile);

// What `aws sso login` has left.
struct SsoLogin {
  std::string token, refresh_token, client_id, client_secret;
  std::int64_t ends_wall_us = 0, client_ends_wall_us = 0;
  bool renewable(std::int64_t now_us) const;
};
// integrity: it is no such file.
Result<SsoLogin> read_sso_login(const Value& document);

// The keys of the role. auth: nobody has signed in, the sign-in is over, or it does not give that role.
Async<cloud::FoundKeys> sso_keys(At at, Sso sso, CancelToken token);

}  // namespace rille::provider::aws
