#include "runtime/provider/azure/keys.hpp"

#include <algorithm>
#include <filesystem>

#include "runtime/base/base64.hpp"
#include "runtime/loop/command.hpp"
#include "runtime/provider/cloud/bearer.hpp"
#include "runtime/provider/cloud/lent_keys.hpp"

namespace rille::provider::azure {

namespace {

using cloud::environment;
using Maybe = std::optional<cloud::FoundKeys>;

Async<Maybe> from_environment(Loop& loop, std::string login, std::string resource, CancelToken token) {
  const std::string tenant = environment("AZURE_TENANT_ID"), client = environment("AZURE_CLIENT_ID"),
                    secret = environment("AZURE_CLIENT_SECRET");
  if (tenant.empty() || client.empty() || secret.empty()) co_return Maybe();
  cloud::TokenForm form;
  form.provider = "azure";
  form.from = "the environment";
  form.url = login + "/" + tenant + "/oauth2/v2.0/token";
  form.fields = [client, secret, resource](std::int64_t) {
    return net::Query{{"grant_type", "client_credentials"},
                      {"client_id", client},
                      {"client_secret", secret},
                      {"scope", resource + "/.default"}};
  };
  co_return co_await cloud::ask_token(loop, std::move(form), std::move(token));
}

// A pod whose service account stands for an application: its token is the application's assertion (RFC 7523).
Async<Maybe> from_workload(Loop& loop, std::string login, std::string resource, CancelToken token) {
  constexpr const char* named_by = "AZURE_FEDERATED_TOKEN_FILE";
  const std::string tenant = environment("AZURE_TENANT_ID"), client = environment("AZURE_CLIENT_ID"),
                    file = environment(named_by);
  if (tenant.empty() || client.empty() || file.empty()) co_return Maybe();
  RILLE_CO_TRY(const std::string word, cloud::read_token(file, named_by));
  cloud::TokenForm form;
  form.provider = "azure";
  form.from = workload_source;
  form.url = login + "/" + tenant + "/oauth2/v2.0/token";
  form.fields = [client, word, resource](std::int64_t) {
    return net::Query{{"grant_type", "client_credentials"},
                      {"client_id", client},
                      {"client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
                      {"client_assertion", word},
                      {"scope", resource + "/.default"}};
  };
  co_return co_await cloud::ask_token(loop, std::move(form), std::move(token));
}

Async<Maybe> from_az(Loop& loop, std::string resource, CancelToken token) {
  if (!std::filesystem::exists(environment("HOME") + "/.azure/azureProfile.json")) co_return Maybe();
  CommandOptions options;
  options.argv = {"az", "account", "get-access-token", "--resource", resource, "--output", "json"};
  const Result<CommandResult> done = co_await run_command(loop, std::move(options), token);
  if (!done || !done->ok()) co_return Maybe();  // not installed any more, or logged out
  const Result<Value> told = Value::from_json(done->out);
  if (!told || told->text("accessToken").empty()) co_return Maybe();
  cloud::FoundKeys found;
  found.keys.token = told->text("accessToken");
  found.from = "az account get-access-token";
  found.expires_wall_us = told->integer("expires_on") * 1'000'000;
  co_return found;
}

}  // namespace

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
  for (const auto& [claim, word] : {std::pair("upn", "user "), std::pair("appid", "application "),
                                    std::pair("oid", "object ")})
    if (const std::string name = claims->text(claim); !name.empty()) return word + name;
  return "";
}

cloud::CredentialChain key_chain(Loop& loop, const Value& endpoints) {
  std::string login = environment("AZURE_AUTHORITY_HOST");
  if (login.ends_with('/')) login.pop_back();
  login = endpoints.text("login", login.empty() ? "https://login.microsoftonline.com" : login);
  const std::string resource = endpoints.text("resource", "https://management.azure.com");
  std::string machine = endpoints.text("metadata", "http://169.254.169.254") +
                        "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=" + resource + "/";
  // Which of several identities that were given to the machine.
  if (const std::string client = environment("AZURE_CLIENT_ID"); !client.empty()) machine += "&client_id=" + client;
  std::vector<cloud::KeySource> sources{
      {"AZURE_CLIENT_SECRET", [&loop, login, resource](CancelToken t) {
         return from_environment(loop, login, resource, std::move(t));
       }},
      {"AZURE_FEDERATED_TOKEN_FILE", [&loop, login, resource](CancelToken t) {
         return from_workload(loop, login, resource, std::move(t));
       }},
      {"az", [&loop, resource](CancelToken t) { return from_az(loop, resource, std::move(t)); }},
      {"this machine's identity", [&loop, machine](CancelToken t) {
         net::Headers headers{{"Metadata", "true"}};
         return cloud::machine_token(loop, machine, std::move(headers), std::move(t));
       }}};
  return {loop, "azure", std::move(sources),
          "set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or run: az login"};
}

}  // namespace rille::provider::azure
