// Alibaba Cloud credentials, in the order of its own tools: environment, OIDC, the command line's profile, the SDKs'
// file, the role of this machine. Loop thread only.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "runtime/core/base/value.hpp"
#include "runtime/core/net/credentials/chain.hpp"

namespace rille::net::alibaba {

// `endpoints`: overrides of "sts" and "metadata"; "" skips that source.
CredentialChain key_chain(Loop& loop, const Value& endpoints);

// How a profile of the command line or of the SDKs' file signs in, in the command line's terms.
struct Profile {
  std::string mode;  // "AK", "StsToken", "RamRoleArn", "EcsRamRole", "OIDC", ..
  Credentials keys;
  std::string role, session, external_id, policy, sts_region, source;
  std::string machine_role, oidc_provider, oidc_token_file;
  std::int64_t lasts_s = 3'600;
};
// A profile of ~/.aliyun/config.json; name "": the current one. Nothing: no profile of that name.
std::optional<Profile> profile_in(const Value& config, const std::string& name);
Profile profile_of_section(std::map<std::string, std::string> section);  // of ~/.alibabacloud/credentials

}  // namespace rille::net::alibaba
