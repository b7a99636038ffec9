#include "runtime/core/net/credentials/gcp/federation.hpp"

#include <fmt/format.h>

#include "runtime/core/net/credentials/bearer.hpp"
#include "runtime/core/net/credentials/gcp/executable.hpp"
#include "runtime/core/net/credentials/lent_keys.hpp"
#include "runtime/core/net/credentials/plain_key.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::net::gcp {

namespace {

using Maybe = std::optional<FoundKeys>;

constexpr std::size_t token_bytes_max = 256 << 10;
constexpr std::int64_t url_timeout_ms = 10'000, lasts_s = 3'600;
constexpr KeyNames token_names{"accessToken", "accessToken", "accessToken", "expireTime"};

Async<std::string> subject_token(Loop& loop, Value source, std::string from, CancelToken token) {
  const std::string file = source.text("file"), url = source.text("url");
  if (!file.empty()) {
    Result<std::string> text = store::read_file(file, token_bytes_max);
    if (text) co_return subject_token_in(*text, source["format"], file);
    Error e = std::move(text).error();
    e.hint = "credential_source.file of " + from + " names this file";
    co_return e;
  }
  if (url.empty())
    co_return make_error(ErrorKind::auth, from + " has no file, URL or program for its token",
                         "credential_source needs file, url or executable; AWS as a source is not supported");
  HttpOptions options;
  // no proxy for a plain http URL: its server is on this machine
  options.proxy_from_environment = url.starts_with("https://");
  HttpClient http(loop, std::move(options));
  HttpRequest request;
  request.url = url;
  request.total_timeout_ms = url_timeout_ms;
  for (const auto& [name, value] : source["headers"].as_object() ? *source["headers"].as_object() : Value::Object())
    if (value.as_string()) request.headers.emplace_back(name, *value.as_string());
  const Result<HttpResponse> answer = co_await http.send(std::move(request), token);
  if (!answer) co_return answer.error();
  if (!answer->ok())
    co_return make_error(ErrorKind::auth,
                         fmt::format("{}: the URL of its token answers with status {}", from, answer->status),
                         "credential_source.url in that file names the URL: correct it, or its headers");
  co_return subject_token_in(answer->body, source["format"], "the response of credential_source.url");
}

Answer read_token_answer(const HttpResponse& response) {
  Answer out;
  if (Result<Value> value = Value::from_json(response.body)) out.value = std::move(*value);
  if (response.ok()) return out;
  out.code = out.value["error"].text("status", "HTTP " + std::to_string(response.status));
  out.message = out.value["error"].text("message");
  return out;
}

constexpr Meaning token_meanings[] = {
    {"PERMISSION_DENIED", Trouble::auth,
     "the caller needs roles/iam.serviceAccountTokenCreator, or workloadIdentityUser, of that service account"},
    {"UNAUTHENTICATED", Trouble::auth},
    {"RESOURCE_EXHAUSTED", Trouble::throttle},
    {"UNAVAILABLE", Trouble::transient}};

}  // namespace

Result<std::string> subject_token_in(const std::string& text, const Value& format, const std::string& place) {
  std::string token = text;
  if (format.text("type") == "json") {
    const Result<Value> document = Value::from_json(text);
    token = document ? document->text(format.text("subject_token_field_name")) : "";
  }
  const std::size_t end = token.find_last_not_of(" \t\r\n");
  token.resize(end == std::string::npos ? 0 : end + 1);
  if (token.empty())
    return make_error(ErrorKind::auth, place + " has no token",
                      "credential_source.format says where it is: the whole text, or a field of JSON");
  return token;
}

Async<Maybe> federated_token(Loop& loop, Value file, std::string from, CancelToken token) {
  Result<std::string> got(std::string{});
  if (file["credential_source"]["executable"].is_null())
    got = co_await subject_token(loop, file["credential_source"], from, token);
  else got = co_await program_token(loop, file, from, token);
  RILLE_CO_TRY(const std::string word, std::move(got));
  Query fields{{"grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"},
               {"audience", file.text("audience")},
               {"scope", token_scope},
               {"requested_token_type", "urn:ietf:params:oauth:token-type:access_token"},
               {"subject_token_type", file.text("subject_token_type")},
               {"subject_token", word}};
  if (const std::string project = file.text("workforce_pool_user_project"); !project.empty())
    fields.emplace_back("options", Value().set("userProject", project).to_json());
  TokenForm form;
  form.provider = "gcp";
  form.from = std::move(from);
  form.url = file.text("token_url", "https://sts.googleapis.com/v1/token");
  form.fields = [fields](std::int64_t) { return fields; };
  co_return co_await ask_token(loop, std::move(form), std::move(token));
}

Async<Maybe> impersonate(Loop& loop, Value file, FoundKeys caller, CancelToken token) {
  const std::string url = file.text("service_account_impersonation_url");
  if (url.find("://") == std::string::npos)
    co_return make_error(
        ErrorKind::auth, caller.from + " has no service_account_impersonation_url",
        "write the file again: gcloud auth application-default login --impersonate-service-account=ACCOUNT");
  const std::int64_t wanted_s = file["service_account_impersonation"].integer("token_lifetime_seconds", lasts_s);
  Value asked;
  asked.set("scope", Value::Array{Value(token_scope)}).set("lifetime", fmt::format("{}s", wanted_s));
  if (file["delegates"].as_array()) asked.set("delegates", file["delegates"]);
  Loan loan;
  loan.operation = "generateAccessToken";
  loan.options.provider = "gcp";
  loan.options.meanings = token_meanings;
  loan.options.read = read_token_answer;
  loan.options.sign = [](Parts parts, const Credentials& who, std::int64_t) {
    return bear_token(std::move(parts), who);
  };
  loan.who = {ready_keys(caller)};
  loan.secrets = {caller.keys.token};
  loan.parts = json_request("POST", url, "", asked);
  RILLE_CO_TRY(const Value answer, co_await ask_loan(loop, std::move(loan), std::move(token)));
  RILLE_CO_TRY(FoundKeys lent, read_keys(answer, token_names, caller.from));
  FoundKeys found;
  found.keys.token = lent.keys.token;
  found.from = lent.from;
  found.expires_wall_us = lent.expires_wall_us;
  co_return found;
}

std::string account_of(const Value& file) {
  const std::string url = file.text("service_account_impersonation_url");
  const std::size_t end = url.find(":generateAccessToken"), begin = url.rfind('/', end);
  if (end == std::string::npos || begin == std::string::npos) return file.text("client_email");
  return url.substr(begin + 1, end - begin - 1);
}

}  // namespace rille::net::gcp
