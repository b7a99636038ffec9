#include "runtime/core/net/credentials/azure/keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

#include "runtime/core/base/base64.hpp"
#include "runtime/core/base/id.hpp"
#include "runtime/core/base/places.hpp"
#include "runtime/core/base/text.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/net/credentials/api.hpp"
#include "runtime/core/net/credentials/bearer.hpp"
#include "runtime/core/net/credentials/key_program.hpp"
#include "runtime/core/net/credentials/lent_keys.hpp"
#include "runtime/core/net/sign/certificate.hpp"
#include "runtime/core/net/sign/jwt.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::net::azure {

namespace {

using Maybe = std::optional<FoundKeys>;

constexpr const char* assertion_type = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
constexpr const char* az_source = "az account get-access-token";
constexpr std::int64_t assertion_lasts_s = 600;
constexpr std::size_t certificate_bytes_max = 1 << 20, profile_bytes_max = 16 << 20;

Async<Maybe> from_environment(Loop& loop, std::string login, std::string resource, CancelToken token) {
  const std::string tenant = environment("AZURE_TENANT_ID"), client = environment("AZURE_CLIENT_ID"),
                    secret = environment("AZURE_CLIENT_SECRET");
  if (tenant.empty() || client.empty() || secret.empty()) co_return Maybe();
  TokenForm form;
  form.provider = "azure";
  form.from = "the environment";
  form.url = login + "/" + tenant + "/oauth2/v2.0/token";
  form.fields = [client, secret, resource](std::int64_t) {
    return Query{{"grant_type", "client_credentials"},
                 {"client_id", client},
                 {"client_secret", secret},
                 {"scope", resource + "/.default"}};
  };
  co_return co_await ask_token(loop, std::move(form), std::move(token));
}

// Workload identity: the pod's token serves as the application's assertion (RFC 7523).
Async<Maybe> from_workload(Loop& loop, std::string login, std::string resource, CancelToken token) {
  constexpr const char* named_by = "AZURE_FEDERATED_TOKEN_FILE";
  const std::string tenant = environment("AZURE_TENANT_ID"), client = environment("AZURE_CLIENT_ID"),
                    file = environment(named_by);
  if (tenant.empty() || client.empty() || file.empty()) co_return Maybe();
  RILLE_CO_TRY(const std::string word, read_token(file, named_by));
  TokenForm form;
  form.provider = "azure";
  form.from = workload_source;
  form.url = login + "/" + tenant + "/oauth2/v2.0/token";
  form.fields = [client, word, resource](std::int64_t) {
    return Query{{"grant_type", "client_credentials"},
                 {"client_id", client},
                 {"client_assertion_type", assertion_type},
                 {"client_assertion", word},
                 {"scope", resource + "/.default"}};
  };
  co_return co_await ask_token(loop, std::move(form), std::move(token));
}

// A token that proves the application's identity, signed with the private key of its certificate.
Result<std::string> assertion(const ClientCertificate& certificate, const std::string& client, const std::string& url,
                              std::int64_t wall_us) {
  Value head, claims;
  head.set("alg", "RS256").set("typ", "JWT").set("x5t", certificate.thumbprint());
  const std::string send = lower_case(environment("AZURE_CLIENT_SEND_CERTIFICATE_CHAIN"));
  if (send == "1" || send == "true") {
    Value::Array chain;
    for (const std::string& one : certificate.chain) chain.emplace_back(to_base64(one));
    head.set("x5c", std::move(chain));
  }
  const std::int64_t now_s = wall_us / 1'000'000;
  claims.set("aud", url).set("iss", client).set("sub", client).set("jti", random_hex(16));
  claims.set("nbf", now_s).set("iat", now_s).set("exp", now_s + assertion_lasts_s);
  return sign_jwt(head.to_json(), claims.to_json(), certificate.key_pem);
}

Async<Maybe> from_certificate(Loop& loop, std::string login, std::string resource, CancelToken token) {
  constexpr const char* named_by = "AZURE_CLIENT_CERTIFICATE_PATH";
  const std::string tenant = environment("AZURE_TENANT_ID"), client = environment("AZURE_CLIENT_ID"),
                    file = environment(named_by);
  if (tenant.empty() || client.empty() || file.empty()) co_return Maybe();
  Result<std::string> bytes = store::read_file(file, certificate_bytes_max);
  if (!bytes) co_return std::move(bytes).error().with_hint(std::string(named_by) + " names this file");
  const std::string opens = "AZURE_CLIENT_CERTIFICATE_PASSWORD";
  Result<ClientCertificate> read = read_certificate(*bytes, environment(opens.c_str()));
  if (!read) {
    Error e = std::move(read).error();
    e.message = file + ": " + e.message;
    e.hint += "; " + opens + " must hold the file's password, if the file has one";
    co_return e;
  }
  const ClientCertificate certificate = std::move(*read);
  if (certificate.ends_wall_us < loop.clock().wall_us())
    co_return make_error(ErrorKind::auth,
                         fmt::format("the certificate in {} expired at {}", file, format_utc(certificate.ends_wall_us)),
                         "create a new one and add it to the application: az ad app credential reset");
  TokenForm form;
  form.provider = "azure";
  form.from = certificate_source;
  form.url = login + "/" + tenant + "/oauth2/v2.0/token";
  const std::string url = form.url;
  if (!assertion(certificate, client, url, 0))
    co_return make_error(ErrorKind::auth, "the private key in " + file + " cannot sign",
                         "Azure accepts certificates with RSA keys only");
  form.fields = [certificate, client, url, resource](std::int64_t wall_us) {
    const Result<std::string> sworn = assertion(certificate, client, url, wall_us);
    return Query{{"grant_type", "client_credentials"},
                 {"client_id", client},
                 {"client_assertion_type", assertion_type},
                 {"client_assertion", sworn ? *sworn : ""},
                 {"scope", resource + "/.default"}};
  };
  co_return co_await ask_token(loop, std::move(form), std::move(token));
}

// Whether a user is logged in with the command line `az`.
bool az_is_used() {
  std::string folder = environment("AZURE_CONFIG_DIR");
  if (folder.empty()) folder = environment("HOME") + "/.azure";
  const Result<std::string> text = store::read_file(folder + "/azureProfile.json", profile_bytes_max);
  if (!text) return false;
  const std::size_t begin = text->starts_with("\xef\xbb\xbf") ? 3 : 0;  // `az` writes a byte order mark
  const Result<Value> profile = Value::from_json(text->substr(begin));
  return !profile || !list_of((*profile)["subscriptions"]).empty();
}

// Asks the program `az` for a token. `az` may be logged in to several accounts and accepts a tenant or a subscription
// to select one, but not both.
Async<Maybe> from_az(Loop& loop, std::string resource, AzAccount account, CancelToken token) {
  if (!az_is_used() || find_program("az").empty()) co_return Maybe();
  KeyProgram program;
  program.argv = {"az", "account", "get-access-token", "--output", "json", "--resource", resource};
  if (!account.tenant.empty()) program.argv.insert(program.argv.end(), {"--tenant", account.tenant});
  else if (!account.subscription.empty())
    program.argv.insert(program.argv.end(), {"--subscription", account.subscription});
  program.env = {{"AZURE_CORE_NO_COLOR", "true"}};
  program.what = az_source;
  program.known = true;
  Result<Value> told = co_await ask_program(loop, std::move(program), token);
  if (!told && token.cancelled()) co_return told.error();
  Result<FoundKeys> found = told ? read_az_token(*told) : Result<FoundKeys>(told.error());
  if (found) co_return std::move(*found);
  co_return std::move(found).error().with_hint(
      "run az login as a user of the subscription; `az account list` lists the known "
      "accounts, `az logout` removes this source");
}

Async<Maybe> from_machine(Loop& loop, std::string url, bool told, CancelToken token) {
  Headers headers{{"Metadata", "true"}};
  std::vector<const char*> words;
  if (!told)
    // the long number is the asset tag of every Azure machine
    words = {"Microsoft", "7783-7084-3265-9085-8269-3286-77"};
  co_return co_await machine_token(loop, std::move(url), std::move(headers), std::move(words), std::move(token));
}

}  // namespace

Result<FoundKeys> read_az_token(const Value& printed) {
  FoundKeys found;
  found.keys.token = printed.text("accessToken");
  found.from = az_source;
  if (found.keys.token.empty())
    return make_error(ErrorKind::auth, std::string(az_source) + " printed no token",
                      "run az login again; then run this command by hand to see what it prints");
  std::tm end{};
  const double end_s = printed.number("expires_on");
  if (end_s > 0 && end_s < 1e12) {
    found.expires_wall_us = static_cast<std::int64_t>(end_s) * 1'000'000;
    // `az` before 2.54 prints only the local time
  } else if (strptime(printed.text("expiresOn").c_str(), "%Y-%m-%d %H:%M:%S", &end)) {
    end.tm_isdst = -1;
    found.expires_wall_us = static_cast<std::int64_t>(std::mktime(&end)) * 1'000'000;
  } else {
    return make_error(ErrorKind::auth, std::string(az_source) + " printed a token without an expiry",
                      "update the program az, then run az login again");
  }
  return found;
}

std::string owner_of(const std::string& access_token) {
  const std::size_t first = access_token.find('.'), second = access_token.find('.', first + 1);
  if (first == std::string::npos || second == std::string::npos) return "";
  std::string middle = access_token.substr(first + 1, second - first - 1);
  std::replace(middle.begin(), middle.end(), '-', '+');
  std::replace(middle.begin(), middle.end(), '_', '/');
  middle.append((4 - middle.size() % 4) % 4, '=');
  const Result<std::string> text = from_base64(middle);
  const Result<Value> claims = text ? Value::from_json(*text) : Result<Value>(text.error());
  if (!claims) return "";
  for (const auto& [claim, word] :
       {std::pair("upn", "user "), std::pair("appid", "application "), std::pair("oid", "object ")})
    if (const std::string name = claims->text(claim); !name.empty()) return word + name;
  return "";
}

// The sources are asked in the order of azure-identity's DefaultAzureCredential.
CredentialChain key_chain(Loop& loop, const Value& endpoints, AzAccount account) {
  std::string login = environment("AZURE_AUTHORITY_HOST");
  if (login.ends_with('/')) login.pop_back();
  if (!login.empty() && login.find("://") == std::string::npos) login = "https://" + login;
  login = endpoints.text("login", login.empty() ? "https://login.microsoftonline.com" : login);
  const std::string resource = endpoints.text("resource", "https://management.azure.com");
  std::string machine = endpoints.text("metadata", "http://169.254.169.254") +
                        "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=" + resource + "/";
  // The client id selects one of the machine's user-assigned identities.
  if (const std::string client = environment("AZURE_CLIENT_ID"); !client.empty()) machine += "&client_id=" + client;
  const bool told = !endpoints["metadata"].is_null();
  std::vector<KeySource> sources{
      {"AZURE_CLIENT_SECRET",
       [&loop, login, resource](CancelToken t) { return from_environment(loop, login, resource, std::move(t)); }},
      {"AZURE_CLIENT_CERTIFICATE_PATH",
       [&loop, login, resource](CancelToken t) { return from_certificate(loop, login, resource, std::move(t)); }},
      {"AZURE_FEDERATED_TOKEN_FILE",
       [&loop, login, resource](CancelToken t) { return from_workload(loop, login, resource, std::move(t)); }},
      {"this machine's identity",
       [&loop, machine, told](CancelToken t) { return from_machine(loop, machine, told, std::move(t)); }},
      {"az", [&loop, resource, account](CancelToken t) { return from_az(loop, resource, account, std::move(t)); }}};
  return {loop, "azure", std::move(sources),
          "set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET (or AZURE_CLIENT_CERTIFICATE_PATH), or run: "
          "az login"};
}

}  // namespace rille::net::azure
