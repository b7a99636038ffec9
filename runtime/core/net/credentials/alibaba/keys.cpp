#include "runtime/core/net/credentials/alibaba/keys.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <vector>

#include "runtime/core/base/time.hpp"
#include "runtime/core/net/credentials/alibaba/service.hpp"
#include "runtime/core/net/credentials/lent_keys.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::net::alibaba {

namespace {

using Maybe = std::optional<FoundKeys>;

constexpr std::size_t config_bytes_max = 4 << 20;
constexpr int chained_max = 8;
constexpr KeyNames key_names{"AccessKeyId", "AccessKeySecret", "SecurityToken", "Expiration"};

struct Places {
  Loop& loop;
  std::string sts, metadata;  // service URLs; sts "": the STS endpoint of the profile's region
  Value config = {};          // content of ~/.aliyun/config.json, in which a profile may name a source profile
  // words to find in the firmware (firmware.hpp); set only for the default metadata service
  std::vector<const char*> firmware = {};
};
using At = std::shared_ptr<const Places>;

std::string sts_url(const Places& at, const Profile& p) {
  if (!at.sts.empty()) return at.sts;
  const std::string region = p.sts_region.empty() ? environment("ALIBABA_CLOUD_STS_REGION") : p.sts_region;
  return region.empty() ? "https://sts.aliyuncs.com" : fmt::format("https://sts.{}.aliyuncs.com", region);
}

MachineKeys machine(const Places& at, const std::string& role) {
  return {.base = at.metadata,
          .session = "/latest/api/token",
          .lifetime_header = "X-aliyun-ecs-metadata-token-ttl-seconds",
          .session_header = "X-aliyun-ecs-metadata-token",
          .session_needed = false,
          .path = "/latest/meta-data/ram/security-credentials/",
          .role = role,
          .names = key_names,
          .firmware = at.firmware};
}

Async<Maybe> lent(Loop& loop, Loan loan, std::string from, CancelToken token) {
  Result<Value> answer = co_await ask_loan(loop, std::move(loan), std::move(token));
  if (!answer) {
    Error e = std::move(answer).error();
    e.message = from + ": " + e.message;
    co_return e;
  }
  RILLE_CO_TRY(FoundKeys found, read_keys((*answer)["Credentials"], key_names, from));
  co_return found;
}

Query role_fields(const Profile& p) {
  Query out{{"RoleArn", p.role},
            {"RoleSessionName", p.session.empty() ? "rille" : p.session},
            {"DurationSeconds", std::to_string(p.lasts_s)}};
  if (!p.policy.empty()) out.emplace_back("Policy", p.policy);
  return out;
}

Async<Maybe> by_oidc(At at, Profile p, std::string named_by, std::string from, CancelToken token) {
  RILLE_CO_TRY(const std::string word, read_token(p.oidc_token_file, named_by));
  Loan loan;
  loan.operation = "AssumeRoleWithOIDC";
  loan.options = api_options("2015-04-01");
  loan.options.sign = [](Parts parts, const Credentials&, std::int64_t wall_us) {
    parts.query.emplace_back("Timestamp", format_utc(wall_us));
    return parts;
  };
  loan.who = no_keys();
  loan.secrets = {word};
  loan.parts = parts_for(sts_url(*at, p), loan.operation);
  loan.parts.headers = {{"Content-Type", "application/x-www-form-urlencoded"}};
  loan.parts.query = {{"Version", "2015-04-01"}, {"Action", loan.operation}, {"Format", "JSON"}};
  Query form = role_fields(p);
  form.emplace_back("OIDCProviderArn", p.oidc_provider);
  form.emplace_back("OIDCToken", word);
  loan.parts.body = join_query(form);
  co_return co_await lent(at->loop, std::move(loan), std::move(from), std::move(token));
}

Async<Maybe> by_role(At at, Profile p, std::vector<KeySource> who, std::string from, CancelToken token) {
  Loan loan;
  loan.operation = "AssumeRole";
  loan.options = api_options("2015-04-01");
  loan.who = std::move(who);
  loan.parts = parts_for(sts_url(*at, p), loan.operation);
  loan.parts.query = role_fields(p);
  if (!p.external_id.empty()) loan.parts.query.emplace_back("ExternalId", p.external_id);
  co_return co_await lent(at->loop, std::move(loan), std::move(from), std::move(token));
}

FoundKeys own_keys(const Profile& p, const std::string& from) {
  FoundKeys found;
  found.keys = p.keys;
  found.from = from;
  return found;
}

Async<Maybe> keys_of(At at, Profile p, std::string from, int depth, CancelToken token);

Async<Maybe> source_keys(At at, std::string name, std::string from, int depth, CancelToken token) {
  const std::optional<Profile> source = profile_in(at->config, name);
  if (!source || name.empty() || depth > chained_max)
    co_return make_error(ErrorKind::auth, fmt::format("{}: its source_profile is '{}'", from, name),
                         depth > chained_max ? "the source profiles form a cycle" : "there is no profile of that name");
  std::string of_source = fmt::format("the profile '{}' of aliyun", name);
  co_return co_await keys_of(at, *source, std::move(of_source), depth, std::move(token));
}

Async<Maybe> keys_of(At at, Profile p, std::string from, int depth, CancelToken token) {
  const bool has_keys = !p.keys.id.empty() && !p.keys.secret.empty();
  if (p.mode == "AK" || p.mode == "StsToken") co_return has_keys ? Maybe(own_keys(p, from)) : Maybe();
  MachineKeys here = machine(*at, p.machine_role);
  if (p.mode == "EcsRamRole") co_return co_await ask_machine(at->loop, std::move(here), std::move(token));
  if (p.mode == "OIDC") co_return co_await by_oidc(at, p, from, from + ", " + p.role, std::move(token));
  std::vector<KeySource> who;
  if (p.mode == "RamRoleArn" && has_keys) who = {ready_keys(own_keys(p, from))};
  else if (p.mode == "RamRoleArnWithEcs") who = {keys_of_machine(at->loop, std::move(here))};
  else if (p.mode == "ChainableRamRoleArn")
    who = {{from, [=](CancelToken t) { return source_keys(at, p.source, from, depth + 1, t); }}};
  if (who.empty() || p.role.empty())
    co_return make_error(
        ErrorKind::auth,
        fmt::format("{} uses the mode '{}', which Rille does not support, or lacks a field that this mode needs", from,
                    p.mode),
        "set ALIBABA_CLOUD_ACCESS_KEY_ID, ALIBABA_CLOUD_ACCESS_KEY_SECRET and "
        "ALIBABA_CLOUD_SECURITY_TOKEN, or use another profile (ALIBABA_CLOUD_PROFILE)");
  co_return co_await by_role(at, p, std::move(who), from + ", " + p.role, std::move(token));
}

Async<Maybe> from_oidc_variables(At at, CancelToken token) {
  Profile p;
  p.role = environment("ALIBABA_CLOUD_ROLE_ARN");
  p.oidc_provider = environment("ALIBABA_CLOUD_OIDC_PROVIDER_ARN");
  p.oidc_token_file = environment("ALIBABA_CLOUD_OIDC_TOKEN_FILE");
  p.session = environment("ALIBABA_CLOUD_ROLE_SESSION_NAME");
  if (p.role.empty() || p.oidc_provider.empty() || p.oidc_token_file.empty()) co_return Maybe();
  std::string from = "the OIDC token of " + p.role;
  co_return co_await by_oidc(at, p, "ALIBABA_CLOUD_OIDC_TOKEN_FILE", std::move(from), std::move(token));
}

Async<Maybe> from_command_line(At at, CancelToken token) {
  const std::string file = environment("HOME") + "/.aliyun/config.json";
  std::error_code ignored;
  if (environment("ALIBABA_CLOUD_CLI_PROFILE_DISABLED") == "true" || !std::filesystem::exists(file, ignored))
    co_return Maybe();
  RILLE_CO_TRY(const std::string text, store::read_file(file, config_bytes_max));
  const Result<Value> config = Value::from_json(text);
  if (!config) co_return make_error(ErrorKind::auth, file + " is not JSON", "run `aliyun configure` to write it again");
  const std::string named = environment("ALIBABA_CLOUD_PROFILE");
  const std::optional<Profile> profile = profile_in(*config, named);
  if (!profile) co_return Maybe();
  const auto with = std::make_shared<Places>(*at);
  with->config = *config;
  std::string from = fmt::format("the profile '{}' of aliyun", named.empty() ? config->text("current") : named);
  co_return co_await keys_of(with, *profile, std::move(from), 0, std::move(token));
}

Async<Maybe> from_sdk_file(At at, std::string file, std::string section, CancelToken token) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) co_return Maybe();
  RILLE_CO_TRY(const Ini ini, read_ini(file));
  if (!ini.contains(section)) co_return Maybe();
  Profile profile = profile_of_section(ini.at(section));
  co_return co_await keys_of(at, std::move(profile), std::move(file), 0, std::move(token));
}

}  // namespace

std::optional<Profile> profile_in(const Value& config, const std::string& name) {
  const std::string wanted = name.empty() ? config.text("current") : name;
  for (const Value& v : list_of(config["profiles"])) {
    if (v.text("name") != wanted) continue;
    Profile p;
    p.mode = v.text("mode");
    p.keys = {v.text("access_key_id"), v.text("access_key_secret"), v.text("sts_token")};
    if (p.mode.empty()) p.mode = "AK";
    if (p.mode == "AK") p.keys.token.clear();
    p.role = v.text("ram_role_arn");
    p.session = v.text("ram_session_name");
    p.external_id = v.text("external_id");
    p.policy = v.text("policy");
    p.sts_region = v.text("sts_region");
    p.source = v.text("source_profile");
    p.machine_role = v.text("ram_role_name");
    p.oidc_provider = v.text("oidc_provider_arn");
    p.oidc_token_file = v.text("oidc_token_file");
    if (const std::int64_t lasts_s = v.integer("expired_seconds"); lasts_s > 0) p.lasts_s = lasts_s;
    return p;
  }
  return {};
}

Profile profile_of_section(std::map<std::string, std::string> section) {
  static const std::map<std::string, std::string> modes{{"access_key", "AK"},
                                                        {"sts", "StsToken"},
                                                        {"ram_role_arn", "RamRoleArn"},
                                                        {"ecs_ram_role", "EcsRamRole"},
                                                        {"oidc_role_arn", "OIDC"}};
  Profile p;
  const auto mode = modes.find(section["type"]);
  p.mode = section["type"].empty() ? "StsToken" : mode == modes.end() ? section["type"] : mode->second;
  p.keys = {section["access_key_id"], section["access_key_secret"], section["sts_token"]};
  if (p.keys.token.empty()) p.keys.token = section["security_token"];
  p.role = section["role_arn"];
  p.session = section["role_session_name"];
  p.external_id = section["external_id"];
  p.policy = section["policy"];
  p.machine_role = section["role_name"];
  p.oidc_provider = section["oidc_provider_arn"];
  p.oidc_token_file = section["oidc_token_file_path"];
  if (const std::int64_t lasts_s = std::atoll(section["role_session_expiration"].c_str()); lasts_s > 0)
    p.lasts_s = lasts_s;
  return p;
}

CredentialChain key_chain(Loop& loop, const Value& endpoints) {
  const auto at = std::make_shared<Places>(Places{loop, endpoints.text("sts"), {}});
  at->metadata = endpoints.text("metadata", "http://100.100.100.200");
  if (endpoints["metadata"].is_null()) at->firmware = {"alibaba"};
  if (environment("ALIBABA_CLOUD_ECS_METADATA_DISABLED") == "true") at->metadata.clear();
  std::string file = environment("ALIBABA_CLOUD_CREDENTIALS_FILE"), section = environment("ALIBABA_CLOUD_PROFILE");
  if (file.empty()) file = environment("HOME") + "/.alibabacloud/credentials";
  if (section.empty()) section = "default";
  std::vector<KeySource> sources{
      keys_in_variables("ALIBABA_CLOUD_ACCESS_KEY_ID", "ALIBABA_CLOUD_ACCESS_KEY_SECRET",
                        "ALIBABA_CLOUD_SECURITY_TOKEN"),
      {"ALIBABA_CLOUD_OIDC_TOKEN_FILE", [at](CancelToken t) { return from_oidc_variables(at, t); }},
      {"~/.aliyun/config.json", [at](CancelToken t) { return from_command_line(at, t); }},
      {fmt::format("[{}] of {}", section, file),
       [at, file, section](CancelToken t) { return from_sdk_file(at, file, section, t); }},
      keys_of_machine(loop, machine(*at, environment("ALIBABA_CLOUD_ECS_METADATA")))};
  return {loop, "alibaba", std::move(sources),
          "set ALIBABA_CLOUD_ACCESS_KEY_ID and ALIBABA_CLOUD_ACCESS_KEY_SECRET, or write ~/.alibabacloud/credentials"};
}

}  // namespace rille::net::alibaba
