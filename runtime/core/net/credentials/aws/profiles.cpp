#include "runtime/core/net/credentials/aws/profiles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <vector>

#include "runtime/core/base/time.hpp"
#include "runtime/core/net/credentials/aws/service.hpp"
#include "runtime/core/net/credentials/aws/sso.hpp"
#include "runtime/core/net/credentials/key_program.hpp"

namespace rille::net::aws {

namespace {

using Maybe = std::optional<FoundKeys>;
using Profile = std::map<std::string, std::string>;
using Names = std::vector<std::string>;

constexpr KeyNames sts_names{"AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"};

// Merges ~/.aws/config and ~/.aws/credentials; the credentials file overrides the config file.
Result<Ini> read_profiles() {
  const std::string home = environment("HOME") + "/.aws/";
  Ini all;
  for (const auto& [variable, file] :
       {std::pair("AWS_CONFIG_FILE", "config"), std::pair("AWS_SHARED_CREDENTIALS_FILE", "credentials")}) {
    std::string path = environment(variable).empty() ? home + file : environment(variable);
    if (path.starts_with("~/")) path.replace(0, 1, environment("HOME"));
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) continue;
    RILLE_TRY(const Ini ini, read_ini(path));
    for (const auto& [section, fields] : ini)
      for (const auto& [key, value] : fields) all[section][key] = value;
  }
  return all;
}

std::string field(const Profile& profile, const char* name) {
  const auto at = profile.find(name);
  return at == profile.end() ? "" : at->second;
}

Profile profile_of(const Ini& all, const std::string& name) {
  const auto at = all.find(name);
  return at == all.end() ? Profile() : at->second;
}

std::string shown(const std::string& name) { return "the AWS profile '" + name + "'"; }

// Assumes a role. `secret`: the identity token of an unsigned call, hidden in messages; "": the call is signed.
Async<Maybe> take_role(At at, std::vector<KeySource> who, Query form, std::string secret, std::string from,
                       CancelToken token) {
  Loan loan;
  loan.operation = *form.front().second;
  loan.options = api_options(at->region, "sts", false);
  if (!secret.empty()) loan.options.sign = [](Parts parts, const Credentials&, std::int64_t) { return parts; };
  loan.who = std::move(who);
  loan.secrets = {std::move(secret)};
  const std::string usual = fmt::format("https://sts.{}.{}", at->region, domain_of(at->region));
  loan.parts = parts_for(at->sts.empty() ? usual : at->sts);
  loan.parts.headers = {{"Content-Type", "application/x-www-form-urlencoded; charset=utf-8"}};
  form.emplace_back("Version", "2011-06-15");
  loan.parts.body = join_query(form);
  const std::string result = loan.operation + "Result";
  Result<Value> answer = co_await ask_loan(at->loop, std::move(loan), token);
  if (!answer) {
    Error e = std::move(answer).error();
    e.message = from + ": " + e.message;
    co_return e;
  }
  RILLE_CO_TRY(FoundKeys found, read_keys((*answer)[result]["Credentials"], sts_names, from));
  co_return found;
}

Async<Maybe> by_web_identity(At at, std::string role, std::string session, std::string file, std::string named_by,
                             std::string from, CancelToken token) {
  RILLE_CO_TRY(const std::string word, read_token(file, named_by));
  Query form{{"Action", "AssumeRoleWithWebIdentity"},
             {"RoleArn", role},
             {"RoleSessionName", session.empty() ? "rille" : session},
             {"WebIdentityToken", word}};
  co_return co_await take_role(at, no_keys(), std::move(form), word, std::move(from), std::move(token));
}

Async<Maybe> from_process(Loop& loop, std::string command, std::string profile, CancelToken token) {
  KeyProgram program;
  program.argv = {"sh", "-c", command};
  program.what = "credential_process of " + shown(profile);
  RILLE_CO_TRY(const Value printed, co_await ask_program(loop, std::move(program), std::move(token)));
  RILLE_CO_TRY(FoundKeys found, read_process_keys(printed, profile, loop.clock().wall_us()));
  co_return found;
}

// The keys that the profile itself gives, tried in the order of Amazon's tools: SSO, keys, credential_process.
Async<Maybe> own_keys(At at, std::shared_ptr<const Ini> all, std::string name, CancelToken token) {
  RILLE_CO_TRY(std::optional<Sso> sso, sso_of(*all, name));
  if (sso) {
    RILLE_CO_TRY(FoundKeys found, co_await sso_keys(at, std::move(*sso), std::move(token)));
    co_return found;
  }
  const Profile profile = profile_of(*all, name);
  if (profile.contains("aws_access_key_id")) {
    FoundKeys found;
    found.keys = {field(profile, "aws_access_key_id"), field(profile, "aws_secret_access_key"),
                  field(profile, "aws_session_token")};
    found.from = shown(name);
    co_return found;
  }
  if (!profile.contains("credential_process")) co_return Maybe();
  co_return co_await from_process(at->loop, field(profile, "credential_process"), name, std::move(token));
}

Async<Maybe> role_of(At at, std::shared_ptr<const Ini> all, std::string name, Names before, CancelToken token);

// Keys of the profile that source_profile names; an error if there are none. A profile that names itself gives its
// keys.
Async<Maybe> source_keys(At at, std::shared_ptr<const Ini> all, std::string name, Names before, CancelToken token) {
  const bool itself = !before.empty() && before.back() == name;
  if (!itself && std::find(before.begin(), before.end(), name) != before.end())
    co_return make_error(ErrorKind::auth, fmt::format("{} is its own source_profile", shown(name)),
                         "look for a cycle in ~/.aws/config");
  if (!itself) {
    RILLE_CO_TRY(Maybe found, co_await role_of(at, all, name, before, token));
    if (found) co_return found;
  }
  RILLE_CO_TRY(Maybe found, co_await own_keys(at, all, name, token));
  if (found) co_return found;
  co_return make_error(
      ErrorKind::auth,
      fmt::format("{} has no keys, and {} needs them to assume its role", shown(name), shown(before.back())),
      "check the spelling of source_profile");
}

Result<std::vector<KeySource>> who_asks(At at, std::shared_ptr<const Ini> all, const std::string& name, Names before) {
  const Profile profile = profile_of(*all, name);
  before.push_back(name);
  const std::string source = field(profile, "source_profile"), kind = field(profile, "credential_source");
  std::vector<KeySource> out;
  if (!source.empty()) out = {{shown(source), [=](CancelToken t) { return source_keys(at, all, source, before, t); }}};
  else if (kind == "Environment")
    out = {keys_in_variables("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")};
  else if (kind == "Ec2InstanceMetadata") out = {keys_of_machine(at->loop, at->machine)};
  else if (kind == "EcsContainer")
    out = {{"a container", [at](CancelToken t) { return container_keys(at->loop, at->container, t); }}};
  if (out.empty())
    return make_error(ErrorKind::auth, shown(name) + " has role_arn, but no source of keys for it",
                      "add source_profile, web_identity_token_file, or credential_source: Environment, "
                      "Ec2InstanceMetadata or EcsContainer");
  return out;
}

Async<Maybe> role_of(At at, std::shared_ptr<const Ini> all, std::string name, Names before, CancelToken token) {
  const Profile profile = profile_of(*all, name);
  const std::string role = field(profile, "role_arn"), session = field(profile, "role_session_name");
  if (role.empty()) co_return Maybe();
  std::string from = fmt::format("{}, {}", shown(name), role);
  if (const std::string file = field(profile, "web_identity_token_file"); !file.empty())
    co_return co_await by_web_identity(at, role, session, file, shown(name), std::move(from), std::move(token));
  if (profile.contains("mfa_serial"))
    co_return make_error(ErrorKind::auth, shown(name) + " needs an MFA code at each login (mfa_serial)",
                         fmt::format("let Amazon's command line ask for it and put the keys into this shell: eval "
                                     "\"$(aws configure export-credentials --profile {} --format env)\"",
                                     before.empty() ? name : before.front()));
  RILLE_CO_TRY(std::vector<KeySource> who, who_asks(at, all, name, std::move(before)));
  Query form{{"Action", "AssumeRole"}, {"RoleArn", role}, {"RoleSessionName", session.empty() ? "rille" : session}};
  for (const auto& [key, parameter] :
       {std::pair("external_id", "ExternalId"), std::pair("duration_seconds", "DurationSeconds")})
    if (const std::string value = field(profile, key); !value.empty()) form.emplace_back(parameter, value);
  co_return co_await take_role(at, std::move(who), std::move(form), "", std::move(from), std::move(token));
}

}  // namespace

Result<FoundKeys> read_process_keys(const Value& printed, const std::string& profile, std::int64_t now_us) {
  const std::string what = "credential_process of " + shown(profile);
  if (printed.is_null())
    return make_error(ErrorKind::auth, what + " printed nothing", "run it by hand: it must print JSON");
  if (printed.number("Version") != 1)
    return make_error(ErrorKind::auth, what + " printed credentials of a version other than 1",
                      "it must print \"Version\": 1");
  RILLE_TRY(FoundKeys found, read_keys(printed, sts_names, shown(profile)));
  if (found.expires_wall_us && found.expires_wall_us <= now_us)
    return make_error(ErrorKind::auth,
                      fmt::format("{} printed keys that expired at {}", what, format_utc(found.expires_wall_us)),
                      "log in again with that program");
  return found;
}

// The profile that the environment names, in botocore's order of variables; "": neither variable is set.
std::string named_profile() {
  for (const char* variable : {"AWS_DEFAULT_PROFILE", "AWS_PROFILE"})
    if (std::string name = environment(variable); !name.empty()) return name;
  return "";
}

std::string profile_name() {
  const std::string named = named_profile();
  return named.empty() ? "default" : named;
}

// Ignores an unreadable file, because the search for keys reports it.
std::string usual_region() {
  for (const char* variable : {"AWS_REGION", "AWS_DEFAULT_REGION"})
    if (std::string region = environment(variable); !region.empty()) return region;
  const auto all = read_profiles();
  std::string region = all ? field(profile_of(*all, profile_name()), "region") : "";
  return region.empty() ? "us-east-1" : region;
}

Async<Maybe> profile_role(At at, CancelToken token) {
  RILLE_CO_TRY(Ini all, read_profiles());
  Names none;
  co_return co_await role_of(at, std::make_shared<const Ini>(std::move(all)), profile_name(), std::move(none),
                             std::move(token));
}

Async<Maybe> profile_keys(At at, CancelToken token) {
  RILLE_CO_TRY(Ini all, read_profiles());
  const std::string name = profile_name();
  const auto profiles = std::make_shared<const Ini>(std::move(all));
  RILLE_CO_TRY(Maybe found, co_await own_keys(at, profiles, name, token));
  if (found || named_profile().empty()) co_return found;
  co_return make_error(ErrorKind::auth, shown(name) + " has no keys that Rille can use",
                       "it needs aws_access_key_id, role_arn, sso_account_id and sso_role_name, or credential_process; "
                       "for other ways of Amazon's command line, give another profile credential_process = aws "
                       "configure export-credentials --profile " +
                           name);
}

Async<Maybe> web_identity(At at, CancelToken token) {
  constexpr const char* named_by = "AWS_WEB_IDENTITY_TOKEN_FILE";
  const std::string file = environment(named_by), role = environment("AWS_ROLE_ARN");
  if (file.empty() || role.empty()) co_return Maybe();
  co_return co_await by_web_identity(at, role, environment("AWS_ROLE_SESSION_NAME"), file, named_by,
                                     "the web identity of " + role, std::move(token));
}

}  // namespace rille::net::aws
