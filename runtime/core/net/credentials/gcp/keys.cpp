#include "runtime/core/net/credentials/gcp/keys.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/core/net/credentials/bearer.hpp"
#include "runtime/core/net/credentials/gcp/federation.hpp"
#include "runtime/core/net/sign/jwt.hpp"

namespace rille::net::gcp {

namespace {

using Maybe = std::optional<FoundKeys>;

constexpr std::int64_t assertion_lasts_s = 3'600;

// A token that proves a service account's identity, signed with the account's key (RFC 7523).
Result<std::string> assertion(const Value& account, std::int64_t wall_us) {
  Value head, claims;
  head.set("alg", "RS256").set("typ", "JWT").set("kid", account.text("private_key_id"));
  const std::int64_t now_s = wall_us / 1'000'000;
  claims.set("iss", account.text("client_email")).set("scope", token_scope);
  claims.set("aud", account.text("token_uri", "https://oauth2.googleapis.com/token"));
  claims.set("iat", now_s).set("exp", now_s + assertion_lasts_s);
  return sign_jwt(head.to_json(), claims.to_json(), account.text("private_key"));
}

// Gets a token with a Google key of a service account or of a logged-in user.
Async<Maybe> by_key(Loop& loop, Value account, std::string from, std::string url, CancelToken token) {
  TokenForm form;
  form.provider = "gcp";
  form.from = from;
  form.url = url.empty() ? account.text("token_uri", "https://oauth2.googleapis.com/token") : url;
  const std::string type = account.text("type");
  if (type == "service_account") {
    RILLE_CO_CHECK(assertion(account, 0));  // fail early if the key cannot sign
    form.fields = [account](std::int64_t wall_us) {
      const Result<std::string> sworn = assertion(account, wall_us);
      return Query{{"grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer"}, {"assertion", sworn ? *sworn : ""}};
    };
  } else if (type == "authorized_user") {
    form.fields = [account](std::int64_t) {
      return Query{{"grant_type", "refresh_token"},
                   {"client_id", account.text("client_id")},
                   {"client_secret", account.text("client_secret")},
                   {"refresh_token", account.text("refresh_token")}};
    };
  } else {
    co_return make_error(ErrorKind::auth, fmt::format("{} has the type '{}'", from, type),
                         "supported are service_account, authorized_user, external_account and "
                         "impersonated_service_account");
  }
  co_return co_await ask_token(loop, std::move(form), std::move(token));
}

Async<Maybe> from_file(Loop& loop, std::string named, std::string url, CancelToken token) {
  const std::string file = key_file(named);
  if (file.empty()) co_return Maybe();
  RILLE_CO_TRY(const Value account, read_key_file(file));
  const std::string type = account.text("type");
  Maybe found;
  if (type == "external_account") {
    RILLE_CO_TRY(found, co_await federated_token(loop, account, file, token));
    if (account.text("service_account_impersonation_url").empty()) co_return found;
  } else if (type == "impersonated_service_account") {
    RILLE_CO_TRY(found, co_await by_key(loop, account["source_credentials"], file, url, token));
  } else {
    co_return co_await by_key(loop, account, file, url, std::move(token));
  }
  co_return co_await impersonate(loop, account, *found, std::move(token));
}

}  // namespace

namespace {

std::string gcloud_folder() {
  const std::string moved = environment("CLOUDSDK_CONFIG");
  return moved.empty() ? environment("HOME") + "/.config/gcloud" : moved;
}

}  // namespace

// The active project of gcloud. As in gcloud, a named configuration that does not exist is an error; the name "NONE"
// selects no configuration.
Result<std::string> gcloud_project() {
  const std::string told = environment("CLOUDSDK_ACTIVE_CONFIG_NAME");
  std::string name = told;
  if (name == "NONE") return std::string();
  if (name.empty()) {
    std::ifstream active(gcloud_folder() + "/active_config");
    active >> name;
  }
  if (name.empty()) name = "default";
  const std::string file = gcloud_folder() + "/configurations/config_" + name;
  if (std::error_code ignored; !std::filesystem::exists(file, ignored)) {
    if (told.empty()) return std::string();
    return make_error(ErrorKind::config, fmt::format("gcp: gcloud has no configuration '{}'", name),
                      "CLOUDSDK_ACTIVE_CONFIG_NAME names it; `gcloud config configurations list` shows all");
  }
  RILLE_TRY(Ini ini, read_ini(file));
  return ini["core"]["project"];
}

std::string key_file(const std::string& named) {
  if (!named.empty()) return named;
  if (const std::string file = environment("GOOGLE_APPLICATION_CREDENTIALS"); !file.empty()) return file;
  const std::string own = gcloud_folder() + "/application_default_credentials.json";
  return std::filesystem::exists(own) ? own : "";
}

Result<Value> read_key_file(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return errno_error("read", file, errno);
  std::stringstream text;
  text << in.rdbuf();
  Result<Value> value = Value::from_json(text.str());
  if (!value || !value->as_object())
    return make_error(ErrorKind::auth, file + " is not a Google key file",
                      "it must be the JSON key file of a service account, or the file that gcloud auth "
                      "application-default login writes");
  return value;
}

CredentialChain key_chain(Loop& loop, const std::string& named, const Value& endpoints) {
  const std::string url = endpoints.text("token");
  const std::string machine = endpoints.text("metadata", "http://metadata.google.internal") +
                              "/computeMetadata/v1/instance/service-accounts/default/token";
  const bool told = !endpoints["metadata"].is_null();
  std::vector<KeySource> sources{
      {"a key file", [&loop, named, url](CancelToken t) { return from_file(loop, named, url, std::move(t)); }},
      {"this machine's identity", [&loop, machine, told](CancelToken t) {
         Headers headers{{"Metadata-Flavor", "Google"}};
         std::vector<const char*> words;
         if (!told) words = {"Google"};
         return machine_token(loop, machine, std::move(headers), std::move(words), std::move(t));
       }}};
  return {loop, "gcp", std::move(sources),
          "set GOOGLE_APPLICATION_CREDENTIALS to a service account's key file, or run: gcloud auth "
          "application-default login"};
}

}  // namespace rille::net::gcp
