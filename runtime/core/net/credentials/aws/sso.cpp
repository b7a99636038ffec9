#include "runtime/core/net/credentials/aws/sso.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "runtime/core/base/time.hpp"
#include "runtime/core/net/credentials/aws/service.hpp"
#include "runtime/core/net/credentials/plain_key.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::net::aws {

namespace {

// A login is renewed this long before it expires, as in botocore.
constexpr std::int64_t renew_before_us = 15 * 60 * 1'000'000LL;
constexpr std::size_t login_bytes_max = 1 << 20;
constexpr double lasts_s_max = 1e9;
constexpr KeyNames role_names{"accessKeyId", "secretAccessKey", "sessionToken", "expiration"};

// Error codes of the SSO portal and of the OIDC service.
constexpr Meaning sso_meanings[] = {
    {"UnauthorizedException", Trouble::auth},        {"ForbiddenException", Trouble::auth},
    {"ResourceNotFoundException", Trouble::auth},    {"InvalidRequestException", Trouble::auth},
    {"TooManyRequestsException", Trouble::throttle}, {"SlowDownException", Trouble::throttle},
    {"InternalServerException", Trouble::transient}, {"AccessDeniedException", Trouble::auth},
    {"InvalidGrantException", Trouble::auth},        {"ExpiredTokenException", Trouble::auth},
    {"InvalidClientException", Trouble::auth},       {"UnauthorizedClientException", Trouble::auth},
};

// The error's type is in a header, as "Type:http://..", or in the body, as "namespace#Type".
Answer read_sso_answer(const HttpResponse& response) {
  Answer out;
  if (Result<Value> value = Value::from_json(response.body)) out.value = std::move(*value);
  out.request_id = response.header("x-amzn-requestid");
  if (response.ok()) return out;
  std::string type = response.header("x-amzn-errortype");
  if (type.empty()) type = out.value.text("__type", out.value.text("error"));
  type.erase(std::min(type.find(':'), type.size()));
  out.code = type.substr(type.find('#') == std::string::npos ? 0 : type.find('#') + 1);
  out.message = out.value.text("message", out.value.text("error_description"));
  return out;
}

Loan asked_of_sso(const char* operation, Parts parts, std::vector<std::string> secrets) {
  Loan loan;
  loan.operation = operation;
  loan.options.provider = "aws";
  loan.options.meanings = sso_meanings;
  loan.options.read = read_sso_answer;
  loan.options.sign = [](Parts unsigned_parts, const Credentials&, std::int64_t) { return unsigned_parts; };
  loan.who = no_keys();
  loan.secrets = std::move(secrets);
  loan.parts = std::move(parts);
  return loan;
}

std::string address(const std::string& told, const char* service, const std::string& region) {
  return told.empty() ? fmt::format("https://{}.{}.{}", service, region, domain_of(region)) : told;
}

std::string login_file(const Sso& sso) {
  const std::string name = sha1_hex(sso.session.empty() ? sso.start_url : sso.session);
  return environment("HOME") + "/.aws/sso/cache/" + name + ".json";
}

std::string label(const Sso& sso) { return "the AWS profile '" + sso.profile + "'"; }
std::string sign_in(const Sso& sso) { return "log in: aws sso login --profile " + sso.profile; }

Error over(const Sso& sso, const std::string& why) {
  return make_error(ErrorKind::auth, fmt::format("{} uses SSO, and its login has expired{}", label(sso), why),
                    sign_in(sso));
}

Result<Value> read_login_file(const Sso& sso, const std::string& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored))
    return make_error(ErrorKind::auth,
                      fmt::format("{} uses SSO, and there is no login: {} does not exist", label(sso), file),
                      sign_in(sso));
  RILLE_TRY(const std::string text, store::read_file(file, login_bytes_max));
  Result<Value> document = Value::from_json(text);
  if (!document || !read_sso_login(*document))
    return make_error(ErrorKind::auth, file + " was not written by `aws sso login`", sign_in(sso));
  return document;
}

Async<Value> renewed(At at, Sso sso, SsoLogin login, CancelToken token) {
  Value asked;
  asked.set("clientId", login.client_id).set("clientSecret", login.client_secret);
  asked.set("grantType", "refresh_token").set("refreshToken", login.refresh_token);
  Parts parts = json_request("POST", address(at->oidc, "oidc", sso.region), "/token", asked);
  Loan loan = asked_of_sso("CreateToken", std::move(parts), {login.refresh_token, login.client_secret});
  loan.effect = Effect::lasting;  // lasting, because the call uses up the refresh token
  RILLE_CO_TRY(Value answer, co_await ask_loan(at->loop, std::move(loan), std::move(token)));
  if (answer.text("accessToken").empty() ||
      !(answer.number("expiresIn") > 0 && answer.number("expiresIn") < lasts_s_max))
    co_return over(sso, ": the response to CreateToken has no token");
  co_return answer;
}

// The token for the SSO portal: from the login file, renewed if it expires soon.
Async<std::string> login_token(At at, Sso sso, CancelToken token) {
  const std::string file = login_file(sso);
  RILLE_CO_TRY(const Value document, read_login_file(sso, file));
  RILLE_CO_TRY(const SsoLogin login, read_sso_login(document));
  const std::int64_t now_us = at->loop.clock().wall_us();
  if (now_us < login.ends_wall_us - renew_before_us) co_return login.token;
  const bool lasts = now_us < login.ends_wall_us;
  if (sso.session.empty() || !login.renewable(now_us)) {
    if (lasts) co_return login.token;
    co_return over(sso, " at " + format_utc(login.ends_wall_us));
  }
  const Result<Value> answer = co_await renewed(at, sso, login, token);
  if (!answer) {
    if (token.cancelled()) co_return answer.error();
    if (lasts) co_return login.token;
    // Another program may have just renewed the login and used up the refresh token, so read the file again.
    const Result<Value> anew = read_login_file(sso, file);
    const Result<SsoLogin> other = anew ? read_sso_login(*anew) : Result<SsoLogin>(anew.error());
    if (other && other->token != login.token && now_us < other->ends_wall_us) co_return other->token;
    if (answer.error().kind != ErrorKind::auth) co_return answer.error();
    co_return over(sso, ", and renewing it failed: " + answer.error().message);
  }
  const auto lasts_us = static_cast<std::int64_t>(answer->number("expiresIn")) * 1'000'000;
  Result<Value> kept = read_login_file(sso, file);  // do not overwrite a newer login that another program has written
  if (kept && kept->text("accessToken") == login.token) {
    kept->set("accessToken", answer->text("accessToken")).set("expiresAt", format_utc(now_us + lasts_us));
    if (!answer->text("refreshToken").empty()) kept->set("refreshToken", answer->text("refreshToken"));
    // ignore a failure: the user then has to log in earlier
    store::write_file_atomic(file, kept->to_json(), 0600).ok();
  }
  co_return answer->text("accessToken");
}

}  // namespace

Result<std::optional<Sso>> sso_of(const Ini& all, const std::string& profile) {
  const auto at = all.find(profile);
  if (at == all.end() || !(at->second.contains("sso_account_id") || at->second.contains("sso_role_name")))
    return std::optional<Sso>();
  std::map<std::string, std::string> fields = at->second;
  Sso out;
  out.profile = profile;
  out.session = fields["sso_session"];
  if (!out.session.empty()) {
    const auto session = all.find("sso-session " + out.session);
    if (session == all.end())
      return make_error(ErrorKind::config,
                        fmt::format("{} names the sso_session '{}', which has no section", label(out), out.session),
                        "aws configure sso writes both");
    for (const char* name : {"sso_region", "sso_start_url"}) {
      const auto told = session->second.find(name);
      if (told == session->second.end()) continue;
      if (!fields[name].empty() && fields[name] != told->second)
        return make_error(
            ErrorKind::config,
            fmt::format("{} and its sso_session '{}' have different values of {}", label(out), out.session, name),
            "remove it from the profile");
      fields[name] = told->second;
    }
  }
  std::string missing;
  for (const auto& [name, into] : {std::pair("sso_account_id", &out.account), std::pair("sso_role_name", &out.role),
                                   std::pair("sso_region", &out.region), std::pair("sso_start_url", &out.start_url)}) {
    *into = fields[name];
    if (into->empty()) (missing += missing.empty() ? "" : ", ") += name;
  }
  if (!missing.empty())
    return make_error(ErrorKind::config, fmt::format("{} uses SSO, but lacks {}", label(out), missing),
                      "aws configure sso writes it");
  return std::optional<Sso>(std::move(out));
}

bool SsoLogin::renewable(std::int64_t now_us) const {
  return !refresh_token.empty() && !client_id.empty() && !client_secret.empty() && now_us < client_ends_wall_us;
}

Result<SsoLogin> read_sso_login(const Value& document) {
  const auto time = [&document](const char* name) -> Result<std::int64_t> {
    std::string text = document.text(name);
    // older versions of the AWS command line write this format
    if (text.ends_with("UTC")) text.replace(text.size() - 3, 3, "Z");
    return parse_utc(text);
  };
  SsoLogin out;
  out.token = document.text("accessToken");
  if (out.token.empty())
    return make_error(ErrorKind::integrity, "the saved SSO login has no accessToken", "run aws sso login again");
  RILLE_TRY(out.ends_wall_us, time("expiresAt"));
  out.refresh_token = document.text("refreshToken");
  out.client_id = document.text("clientId");
  out.client_secret = document.text("clientSecret");
  if (const Result<std::int64_t> end = time("registrationExpiresAt")) out.client_ends_wall_us = *end;
  return out;
}

Async<FoundKeys> sso_keys(At at, Sso sso, CancelToken token) {
  const std::string from = fmt::format("{}, the role {} of the account {} by SSO", label(sso), sso.role, sso.account);
  RILLE_CO_TRY(const std::string word, co_await login_token(at, sso, token));
  Parts parts = json_request("GET", address(at->portal, "portal.sso", sso.region), "/federation/credentials");
  parts.query = {{"role_name", sso.role}, {"account_id", sso.account}};
  parts.headers.emplace_back("x-amz-sso_bearer_token", word);
  Loan loan = asked_of_sso("GetRoleCredentials", std::move(parts), {word});
  Result<Value> answer = co_await ask_loan(at->loop, std::move(loan), token);
  if (!answer) {
    Error e = std::move(answer).error();
    if (e.code == "UnauthorizedException" && !token.cancelled()) co_return over(sso, ": " + e.message);
    e.message = from + ": " + e.message;
    if (e.kind == ErrorKind::auth)
      e.hint = "may this user assume the role? Compare: aws sts get-caller-identity --profile " + sso.profile;
    co_return e;
  }
  Value keys = (*answer)["roleCredentials"];
  keys.set("expiration", keys.number("expiration") / 1'000);  // the service sends milliseconds
  co_return read_keys(keys, role_names, from);
}

}  // namespace rille::net::aws
