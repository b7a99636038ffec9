#include "runtime/core/net/credentials/bearer.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "runtime/core/net/credentials/firmware.hpp"
#include "runtime/core/net/credentials/lent_keys.hpp"

namespace rille::net {

namespace {

constexpr const char* check =
    "check that the application and its key still exist, and that this machine's clock is right";
constexpr Meaning meanings[] = {
    {"temporarily_unavailable", Trouble::throttle}, {"slow_down", Trouble::throttle},
    {"server_error", Trouble::transient},           {"invalid_grant", Trouble::clock, check},
    {"invalid_client", Trouble::auth, check},       {"unauthorized_client", Trouble::auth, check},
    {"invalid_request", Trouble::auth, check},      {"invalid_scope", Trouble::auth},
    {"unsupported_grant_type", Trouble::auth},      {"invalid_target", Trouble::auth},
};

// Reads a token answer and its errors as RFC 6749 defines them in 5.1 and 5.2.
Answer read_answer(const HttpResponse& response) {
  Answer out;
  if (Result<Value> value = Value::from_json(response.body)) out.value = std::move(*value);
  if (response.ok()) {
    out.foreign = out.value.text("access_token").empty();
    return out;
  }
  out.code = response.status == 401 ? "invalid_client" : out.value.text("error");
  out.message = out.value.text("error_description");
  return out;
}

FoundKeys keys_of(const Value& answer, std::string from, std::int64_t now_us) {
  FoundKeys found;
  found.keys.token = answer.text("access_token");
  found.from = std::move(from);
  const Value& lasts = answer["expires_in"];  // Azure's metadata service sends a string instead of a number
  const std::int64_t s = lasts.as_string() ? std::atoll(lasts.as_string()->c_str()) : answer.integer("expires_in");
  found.expires_wall_us = now_us + std::max<std::int64_t>(s, 0) * 1'000'000;
  return found;
}

}  // namespace

Async<std::optional<FoundKeys>> ask_token(Loop& loop, TokenForm form, CancelToken token) {
  CredentialChain none(loop, form.provider, no_keys(), "");
  ApiOptions options;
  options.provider = form.provider;
  options.meanings = meanings;
  options.read = read_answer;
  options.sign = [fields = form.fields](Parts parts, const Credentials&, std::int64_t wall_us) {
    parts.body = join_query(fields(wall_us));
    return parts;
  };
  Api api(loop, std::move(options), none);
  Parts parts;
  parts.method = "POST";
  const std::size_t host = form.url.find("://") + 3, path = std::min(form.url.find('/', host), form.url.size());
  parts.scheme = form.url.substr(0, host - 3);
  parts.host = form.url.substr(host, path - host);
  parts.path = path < form.url.size() ? form.url.substr(path) : "/";
  parts.headers = {{"Content-Type", "application/x-www-form-urlencoded"}};
  std::string operation = "access token";
  RILLE_CO_TRY(const Value answer, co_await api.call(std::move(operation), std::move(parts), Effect::none, token));
  co_return keys_of(answer, form.from, loop.clock().wall_us());
}

Async<std::optional<FoundKeys>> machine_token(Loop& loop, std::string url, Headers headers,
                                              std::vector<const char*> firmware, CancelToken token) {
  HttpRequest request;
  request.url = std::move(url);
  request.headers = std::move(headers);
  request.connect_timeout_ms = patience_ms(firmware);
  const Result<HttpResponse> answer = co_await ask_nearby(loop, std::move(request), token);
  if (!answer || !answer->ok()) co_return std::optional<FoundKeys>();
  const Result<Value> told = Value::from_json(answer->body);
  if (!told || told->text("access_token").empty()) co_return std::optional<FoundKeys>();
  co_return keys_of(*told, "this machine's own identity", loop.clock().wall_us());
}

Parts bear_token(Parts parts, const Credentials& who) {
  parts.set_header("Authorization", "Bearer " + who.token);
  return parts;
}

}  // namespace rille::net
