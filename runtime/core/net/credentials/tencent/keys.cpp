#include "runtime/core/net/credentials/tencent/keys.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "runtime/core/net/credentials/lent_keys.hpp"
#include "runtime/core/net/credentials/tencent/service.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::net::tencent {

namespace {

using Maybe = std::optional<FoundKeys>;

constexpr std::size_t file_bytes_max = 64 << 10;
constexpr int lasts_s = 7'200;
constexpr const char* sts_version = "2018-08-13";
constexpr KeyNames lent_names{"TmpSecretId", "TmpSecretKey", "Token", "ExpiredTime"};
constexpr KeyNames file_names{"secretId", "secretKey", "token", "expiresAt"};

struct Places {
  Loop& loop;
  std::string sts, region;
};
using At = std::shared_ptr<const Places>;

Async<Maybe> lent(At at, Loan loan, Value asked, std::string from, CancelToken token) {
  asked.set("RoleSessionName", asked.text("RoleSessionName", "rille")).set("DurationSeconds", lasts_s);
  loan.parts = parts_for(at->sts, loan.operation, asked.to_json());
  Result<Value> answer = co_await ask_loan(at->loop, std::move(loan), std::move(token));
  if (!answer) {
    Error e = std::move(answer).error();
    e.message = from + ": " + e.message;
    co_return e;
  }
  Value keys = (*answer)["Credentials"];
  keys.set("ExpiredTime", (*answer)["ExpiredTime"]);
  RILLE_CO_TRY(FoundKeys found, read_keys(keys, lent_names, from));
  co_return found;
}

// Keys for a Kubernetes pod (TKE) with a role, where all four variables are set.
Async<Maybe> from_tke(At at, CancelToken token) {
  constexpr const char* named_by = "TKE_WEB_IDENTITY_TOKEN_FILE";
  const std::string region = environment("TKE_REGION"), provider = environment("TKE_PROVIDER_ID"),
                    file = environment(named_by), role = environment("TKE_ROLE_ARN");
  if (region.empty() || provider.empty() || file.empty() || role.empty()) co_return Maybe();
  RILLE_CO_TRY(const std::string word, read_token(file, named_by));
  Loan loan;
  loan.operation = "AssumeRoleWithWebIdentity";
  loan.options = api_options("sts", sts_version, region);
  loan.options.sign = [region](Parts parts, const Credentials&, std::int64_t wall_us) {
    parts.headers.insert(parts.headers.end(), {{"Authorization", "SKIP"},
                                               {"X-TC-Version", sts_version},
                                               {"X-TC-Region", region},
                                               {"X-TC-Timestamp", std::to_string(wall_us / 1'000'000)}});
    return parts;
  };
  loan.who = no_keys();
  loan.secrets = {word};
  Value asked;
  asked.set("ProviderId", provider).set("WebIdentityToken", word).set("RoleArn", role);
  std::string from = "the OIDC token of " + role;
  co_return co_await lent(at, std::move(loan), std::move(asked), std::move(from), std::move(token));
}

// Keys in ~/.tccli/NAME.credential, a file that Tencent's command line writes.
Async<Maybe> from_command_line(At at, CancelToken token) {
  const std::string named = environment("TCCLI_PROFILE"), name = named.empty() ? "default" : named;
  const std::string file = environment("HOME") + "/.tccli/" + name + ".credential";
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) co_return Maybe();
  RILLE_CO_TRY(const std::string text, store::read_file(file, file_bytes_max));
  const Result<Value> told = Value::from_json(text);
  if (!told) co_return make_error(ErrorKind::auth, file + " is not JSON", "run `tccli configure` to write it again");
  if (told->text("secretId").empty() || told->text("secretKey").empty()) co_return Maybe();
  RILLE_CO_TRY(FoundKeys found, read_keys(*told, file_names, file));
  if (found.expires_wall_us && found.expires_wall_us < at->loop.clock().wall_us())
    co_return make_error(ErrorKind::auth, file + " has expired keys", "log in again: tccli auth login");
  const std::string role = told->text("role-arn");
  if (role.empty()) co_return found;
  Loan loan;
  loan.operation = "AssumeRole";
  loan.options = api_options("sts", sts_version, at->region);
  loan.who = {ready_keys(found)};
  Value asked;
  asked.set("RoleArn", role);
  if (const std::string session = told->text("role-session-name"); !session.empty())
    asked.set("RoleSessionName", session);
  std::string from = file + ", " + role;
  co_return co_await lent(at, std::move(loan), std::move(asked), std::move(from), std::move(token));
}

}  // namespace

CredentialChain key_chain(Loop& loop, const Value& endpoints, const std::string& region) {
  const std::string sts = endpoints.text("sts", "https://sts.tencentcloudapi.com");
  const At at = std::make_shared<Places>(Places{loop, sts, region});
  const std::string file = environment("HOME") + "/.tencentcloud/credentials";
  MachineKeys machine{.base = endpoints.text("metadata", "http://metadata.tencentyun.com"),
                      .path = "/latest/meta-data/cam/security-credentials/",
                      .names = lent_names};
  if (endpoints["metadata"].is_null()) machine.firmware = {"tencent"};
  std::vector<KeySource> sources{
      keys_in_variables("TENCENTCLOUD_SECRET_ID", "TENCENTCLOUD_SECRET_KEY", "TENCENTCLOUD_TOKEN"),
      {"TKE_WEB_IDENTITY_TOKEN_FILE", [at](CancelToken t) { return from_tke(at, t); }},
      keys_in_ini({file, "default", "secret_id", "secret_key", "token"}),
      keys_in_ini({"/etc/tencentcloud/credentials", "default", "secret_id", "secret_key", "token"}),
      {"~/.tccli/*.credential", [at](CancelToken t) { return from_command_line(at, t); }},
      keys_of_machine(loop, machine)};
  return {loop, "tencent", std::move(sources),
          "set TENCENTCLOUD_SECRET_ID and TENCENTCLOUD_SECRET_KEY, or write ~/.tencentcloud/credentials"};
}

}  // namespace rille::net::tencent
