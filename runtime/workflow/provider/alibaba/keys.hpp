// Alibaba Cloud's keys, as its own tools find them: environment, OIDC, the command line's profile, the SDKs' file, the
// role of the machine. Loop thread only.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "runtime/core/base/value.hpp"
#include "runtime/workflow/provider/cloud/credentials.hpp"

namespace rille::provider::alibaba {

// `endpoints`: "sts", "metadata" ("": none is asked).
cloud::CredentialChain key_chain(Loop& loop, const Value& endpoints);

// How a profile of the command line, or of the SDKs' file, signs in; the command line's words for it.
struct Profile {
  std::string mode;  // "AK", "StsToken", "RamRoleArn", "EcsRamRole", "OIDC", ..
  net::Credentials keys;
  std::string role, session, external_id, policy, sts_region, source;
  std::string machine_role, oidc_provider, oidc_token_file;
  std::int64_t lasts_s = 3'600;
};
// Of ~/.aliyun/config.json; "": the current one. Nothing: there is none of that name.
std::optional<Profile> profile_in(const Value& config, const std::string& name);
Profile profile_of_section(std::map<std::string, std::string> section);  // of ~/.alibabacloud/credentials

}  // namespace rille::provider::alibaba
