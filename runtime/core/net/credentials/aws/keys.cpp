#include "runtime/core/net/credentials/aws/keys.hpp"

#include <fmt/format.h>

#include "runtime/core/net/credentials/aws/profiles.hpp"
#include "runtime/core/net/credentials/lent_keys.hpp"

namespace rille::net::aws {

namespace {

using Maybe = std::optional<FoundKeys>;

constexpr const char* usual_metadata = "http://169.254.169.254";

// Whether the request may carry its secret token to this URL: https, or a container endpoint on this machine.
bool may_have_the_word(const std::string& url) {
  if (url.starts_with("https://")) return true;
  if (!url.starts_with("http://")) return false;
  const std::string host = url.substr(7, url.find('/', 7) - 7);
  for (const char* known : {"127.0.0.1", "localhost", "[::1]", "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"})
    if (host == known || host.starts_with(std::string(known) + ":")) return true;
  return false;
}

}  // namespace

Async<Maybe> container_keys(Loop& loop, std::string base, CancelToken token) {
  const std::string relative = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
  HttpRequest request;
  request.url = relative.empty() ? environment("AWS_CONTAINER_CREDENTIALS_FULL_URI") : base + relative;
  if (request.url.empty()) co_return Maybe();
  if (relative.empty() && !may_have_the_word(request.url))
    co_return make_error(ErrorKind::auth, "AWS_CONTAINER_CREDENTIALS_FULL_URI is neither https nor on this machine",
                         "use an https URL or a URL of this machine, as Amazon's tools require");
  std::string word = environment("AWS_CONTAINER_AUTHORIZATION_TOKEN");
  constexpr const char* named_by = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";
  if (const std::string file = environment(named_by); !file.empty()) { RILLE_CO_TRY(word, read_token(file, named_by)); }
  if (!word.empty()) request.headers = {{"Authorization", word}};
  const Result<HttpResponse> answer = co_await ask_nearby(loop, std::move(request), token);
  if (!answer) co_return answer.error();
  if (!answer->ok())
    co_return make_error(ErrorKind::auth, fmt::format("the container's credentials: HTTP status {}", answer->status),
                         "the container needs a role and an authorization token from the service that runs it");
  RILLE_CO_TRY(const Value document, Value::from_json(answer->body));
  RILLE_CO_TRY(FoundKeys found, read_keys(document, key_names, "this container's role"));
  co_return found;
}

CredentialChain key_chain(Loop& loop, const Value& endpoints, const std::string& region) {
  const auto places = std::make_shared<Places>(Places{loop, region, endpoints.text("sts"), {}, {}});
  places->portal = endpoints.text("sso");
  places->oidc = endpoints.text("oidc");
  places->container = endpoints.text("container", "http://169.254.170.2");
  std::string metadata = environment("AWS_EC2_METADATA_SERVICE_ENDPOINT");
  if (metadata.ends_with('/')) metadata.pop_back();
  metadata = endpoints.text("metadata", metadata.empty() ? usual_metadata : metadata);
  if (environment("AWS_EC2_METADATA_DISABLED") == "true") metadata.clear();
  places->machine = MachineKeys{.base = metadata,
                                .session = "/latest/api/token",
                                .lifetime_header = "X-aws-ec2-metadata-token-ttl-seconds",
                                .session_header = "X-aws-ec2-metadata-token",
                                .path = "/latest/meta-data/iam/security-credentials/",
                                .names = key_names};
  if (metadata == usual_metadata) places->machine.firmware = {"amazon"};
  const std::string profile = profile_name();
  std::vector<KeySource> sources{
      keys_in_variables("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
      {"a role of the profile '" + profile + "'", [places](CancelToken t) { return profile_role(places, t); }},
      {"AWS_WEB_IDENTITY_TOKEN_FILE", [places](CancelToken t) { return web_identity(places, t); }},
      {"~/.aws/credentials and ~/.aws/config", [places](CancelToken t) { return profile_keys(places, t); }},
      {"a container", [places](CancelToken t) { return container_keys(places->loop, places->container, t); }},
      keys_of_machine(loop, places->machine)};
  return {loop, "aws", std::move(sources),
          "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile in ~/.aws/credentials (AWS_PROFILE names it)"};
}

}  // namespace rille::net::aws
