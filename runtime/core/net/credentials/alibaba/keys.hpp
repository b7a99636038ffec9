// Alibaba Cloud credentials, searched in the order of Alibaba's tools: environment, OIDC, the profile of the command
// line, the file of the SDKs, the role of this machine. Loop thread only.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "runtime/core/base/value.hpp"
#include "runtime/core/net/credentials/chain.hpp"

namespace rille::net::alibaba {

// `endpoints`: URLs that replace the usual ones, under "sts" and "metadata"; "" skips that source.
CredentialChain key_chain(Loop& loop, const Value& endpoints);

// How a profile of the command line or of the SDKs' file signs in; fields and modes have the command line's names.
struct Profile {
  std::string mode;  // "AK", "StsToken", "RamRoleArn", "EcsRamRole", "OIDC", ..
  Credentials keys;
  std::string role, session, external_id, policy, sts_region, source;
  std::string machine_role, oidc_provider, oidc_token_file;
  std::int64_t lasts_s = 3'600;
};
// The profile `name` of ~/.aliyun/config.json; name "": the current profile. Empty: there is no profile of that name.
std::optional<Profile> profile_in(const Value& config, const std::string& name);
// reads a section of ~/.alibabacloud/credentials
Profile profile_of_section(std::map<std::string, std::string> section);

}  // namespace rille::net::alibaba
