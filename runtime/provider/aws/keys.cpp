#include "runtime/provider/aws/keys.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "runtime/base/time.hpp"
#include "runtime/base/value.hpp"
#include "runtime/loop/command.hpp"
#include "runtime/net/http.hpp"

namespace rille::provider::aws {

namespace {

using cloud::environment;
using cloud::FoundKeys;
using Maybe = std::optional<FoundKeys>;

constexpr std::int64_t metadata_timeout_ms = 1'000;

// The JSON that credential_process, containers and instances give.
Result<FoundKeys> read_document(const Value& v, std::string from) {
  FoundKeys found;
  found.keys = {v.text("AccessKeyId"), v.text("SecretAccessKey"), v.text("SessionToken", v.text("Token"))};
  found.from = std::move(from);
  if (found.keys.id.empty() || found.keys.secret.empty())
    return make_error(ErrorKind::auth, "AWS credentials from " + found.from + " have no key");
  if (const std::string end = v.text("Expiration"); !end.empty()) {
    RILLE_TRY(found.expires_wall_us, parse_utc(end));
  }
  return found;
}

Async<Maybe> from_process(Loop& loop, std::string command, std::string from, CancelToken token) {
  CommandOptions options;
  options.argv = {"sh", "-c", command};
  RILLE_CO_TRY(const CommandResult done, co_await run_command(loop, std::move(options), token));
  if (!done.ok())
    co_return make_error(ErrorKind::auth, fmt::format("credential_process of {} ended with {}", from,
                                                      done.status.text()), done.last_words());
  Result<Value> document = Value::from_json(done.out);
  if (!document) co_return make_error(ErrorKind::auth, fmt::format("credential_process of {} gave no JSON", from));
  RILLE_CO_TRY(FoundKeys found, read_document(*document, from));
  co_return found;
}

Async<Maybe> from_profile(Loop& loop, CancelToken token) {
  const std::string home = environment("HOME") + "/.aws/", named = environment("AWS_PROFILE");
  const std::string profile = named.empty() ? "default" : named;
  std::map<std::string, std::string> all;
  for (const auto& [variable, file] : {std::pair("AWS_CONFIG_FILE", "config"),
                                       std::pair("AWS_SHARED_CREDENTIALS_FILE", "credentials")}) {
    const std::string path = environment(variable).empty() ? home + file : environment(variable);
    if (!std::filesystem::exists(path)) continue;
    RILLE_CO_TRY(cloud::Ini ini, cloud::read_ini(path));
    for (auto& [key, value] : ini[profile]) all[key] = value;
  }
  const std::string from = "the AWS profile '" + profile + "'";
  if (all.contains("aws_access_key_id")) {
    FoundKeys found;
    found.keys = {all["aws_access_key_id"], all["aws_secret_access_key"], all["aws_session_token"]};
    found.from = from;
    co_return found;
  }
  if (all.contains("credential_process")) co_return co_await from_process(loop, all["credential_process"], from, token);
  if (!named.empty())
    co_return make_error(ErrorKind::auth, from + " has no keys that Rille can use",
                         "it needs aws_access_key_id, or credential_process: "
                         "credential_process = aws configure export-credentials --profile " + profile);
  co_return Maybe();
}

struct Metadata {
  explicit Metadata(Loop& loop) : http(loop, without_proxy()) {}
  static net::HttpOptions without_proxy() {
    net::HttpOptions options;
    options.proxy_from_environment = false;
    return options;
  }
  net::HttpClient http;
};

Async<net::HttpResponse> ask(std::shared_ptr<Metadata> m, std::string method, std::string url, net::Headers headers,
                             CancelToken token) {
  net::HttpRequest request;
  request.method = std::move(method);
  request.url = std::move(url);
  request.headers = std::move(headers);
  request.retry.attempts = 1;
  request.connect_timeout_ms = request.total_timeout_ms = metadata_timeout_ms;
  co_return co_await m->http.send(std::move(request), token);
}

// A role of this machine, if it is one of Amazon's; else nobody answers.
Async<Maybe> from_instance(std::shared_ptr<Metadata> m, std::string base, CancelToken token) {
  net::Headers wanted{{"X-aws-ec2-metadata-token-ttl-seconds", "21600"}};
  Result<net::HttpResponse> session = co_await ask(m, "PUT", base + "/latest/api/token", std::move(wanted), token);
  if (!session || !session->ok()) co_return Maybe();
  const net::Headers with{{"X-aws-ec2-metadata-token", session->body}};
  const std::string roles = base + "/latest/meta-data/iam/security-credentials/";
  net::Headers first = with, second = with;
  Result<net::HttpResponse> role = co_await ask(m, "GET", roles, std::move(first), token);
  if (!role || !role->ok() || role->body.empty()) co_return Maybe();
  Result<net::HttpResponse> keys = co_await ask(m, "GET", roles + role->body, std::move(second), token);
  if (!keys || !keys->ok()) co_return Maybe();
  RILLE_CO_TRY(const Value document, Value::from_json(keys->body));
  RILLE_CO_TRY(FoundKeys found, read_document(document, "this instance's role"));
  co_return found;
}

Async<Maybe> from_container(std::shared_ptr<Metadata> m, CancelToken token) {
  const std::string relative = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  const std::string url = relative.empty() ? environment("AWS_CONTAINER_CREDENTIALS_FULL_URI")
                                           : "http://169.254.170.2" + relative;
  if (url.empty()) co_return Maybe();
  net::Headers headers;
  if (const std::string word = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN"); !word.empty())
    headers.emplace_back("Authorization", word);
  RILLE_CO_TRY(const net::HttpResponse answer, co_await ask(m, "GET", url, std::move(headers), token));
  if (!answer.ok())
    co_return make_error(ErrorKind::auth, fmt::format("the container's credentials: HTTP status {}", answer.status));
  RILLE_CO_TRY(const Value document, Value::from_json(answer.body));
  RILLE_CO_TRY(FoundKeys found, read_document(document, "this container's role"));
  co_return found;
}

}  // namespace

cloud::CredentialChain key_chain(Loop& loop, const std::string& metadata) {
  const auto http = std::make_shared<Metadata>(loop);
  std::vector<cloud::KeySource> sources{
      cloud::keys_in_variables("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
      [&loop](CancelToken token) { return from_profile(loop, token); },
      [http](CancelToken token) { return from_container(http, token); }};
  if (!metadata.empty())
    sources.push_back([http, metadata](CancelToken token) { return from_instance(http, metadata, token); });
  return {loop, "aws", std::move(sources),
          "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile in ~/.aws/credentials (AWS_PROFILE names it)"};
}

}  // namespace rille::provider::aws
