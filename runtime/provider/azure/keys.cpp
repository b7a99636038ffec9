#include "runtime/provider/azure/keys.hpp"

#include <algorithm>
#include <filesystem>

#include "runtime/base/base64.hpp"
#include "runtime/loop/command.hpp"
#include "runtime/provider/cloud/bearer.hpp"

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
  const std::string login = endpoints.text("login", "https://login.microsoftonline.com");
  const std::string resource = endpoints.text("resource", "https://management.azure.com");
  const std::string machine = endpoints.text("metadata", "http://169.254.169.254") +
                              "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=" + resource + "/";
  std::vector<cloud::KeySource> sources{
      [&loop, login, resource](CancelToken token) { return from_environment(loop, login, resource, std::move(token)); },
      [&loop, resource](CancelToken token) { return from_az(loop, resource, std::move(token)); },
      [&loop, machine](CancelToken token) {
        net::Headers headers{{"Metadata", "true"}};
        return cloud::machine_token(loop, machine, std::move(headers), std::move(token));
      }};
  return {loop, "azure", std::move(sources),
          "set AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET, or run: az login"};
}

}  // namespace rille::provider::azure
