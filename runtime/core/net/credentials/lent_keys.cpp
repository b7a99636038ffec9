#include "runtime/core/net/credentials/lent_keys.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/text.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/net/credentials/firmware.hpp"
#include "runtime/core/store/file.hpp"

namespace rille::net {

namespace {

using Maybe = std::optional<FoundKeys>;

constexpr std::int64_t nearby_timeout_ms = 5'000;
constexpr std::size_t token_bytes_max = 256 << 10;
constexpr const char* session_lasts_s = "21600";
constexpr double seconds_max = 1e12;
constexpr std::string_view blot = "***";

HttpRequest request_for(std::string method, std::string url, Headers headers, std::int64_t connect_ms) {
  HttpRequest out;
  out.connect_timeout_ms = connect_ms;
  out.method = std::move(method);
  out.url = std::move(url);
  out.headers = std::move(headers);
  return out;
}

}  // namespace

Result<FoundKeys> read_keys(const Value& document, const KeyNames& names, std::string from) {
  FoundKeys found;
  found.keys = {document.text(names.id), document.text(names.secret), document.text(names.token)};
  found.from = std::move(from);
  if (found.keys.id.empty() || found.keys.secret.empty()) {
    // The service may send an error instead of keys: {"Code": "AssumeRoleUnauthorizedAccess", "Message": ..}
    const std::string said = document.text("Message", document.text("Code"));
    return make_error(
        ErrorKind::auth, fmt::format("{} has no keys{}{}", found.from, said.empty() ? "" : ": ", said),
        "it must give an access key and its secret: give the machine a role, or set the keys in the environment");
  }
  const Value& end = document[names.expires];
  if (end.as_number()) {
    if (!(*end.as_number() >= 0 && *end.as_number() < seconds_max))
      return make_error(ErrorKind::auth, found.from + " has keys with an invalid expiry",
                        "the expiry must be a UTC time such as 2026-11-21T02:03:04Z, or seconds since 1970");
    found.expires_wall_us = static_cast<std::int64_t>(*end.as_number()) * 1'000'000;
  } else if (end.as_string() && !end.as_string()->empty()) {
    RILLE_TRY(found.expires_wall_us, parse_utc(*end.as_string()));
  }
  return found;
}

Async<HttpResponse> ask_nearby(Loop& loop, HttpRequest request, CancelToken token) {
  HttpOptions options;
  options.proxy_from_environment = false;
  HttpClient http(loop, std::move(options));
  request.retry.attempts = 1;
  if (request.total_timeout_ms == 0) request.total_timeout_ms = nearby_timeout_ms;
  request.connect_timeout_ms = std::min(request.connect_timeout_ms, patience_ms({}));
  co_return co_await http.send(std::move(request), token);
}

Async<Maybe> ask_machine(Loop& loop, MachineKeys where, CancelToken token) {
  if (where.base.empty()) co_return Maybe();
  const std::int64_t patience = patience_ms(where.firmware);
  Headers with;
  if (!where.session.empty()) {
    HttpRequest begin =
        request_for("PUT", where.base + where.session, {{where.lifetime_header, session_lasts_s}}, patience);
    const Result<HttpResponse> session = co_await ask_nearby(loop, std::move(begin), token);
    if (!session) co_return Maybe();
    if (session->ok()) with = {{where.session_header, trimmed(session->body)}};
    else if (where.session_needed) co_return Maybe();
  }
  const bool of_role = where.path.ends_with('/');
  if (of_role && where.role.empty()) {
    HttpRequest name = request_for("GET", where.base + where.path, with, patience);
    const Result<HttpResponse> told = co_await ask_nearby(loop, std::move(name), token);
    if (!told || !told->ok()) co_return Maybe();
    where.role = trimmed(told->body.substr(0, told->body.find('\n')));
    if (where.role.empty()) co_return Maybe();
  }
  HttpRequest last = request_for("GET", where.base + where.path + (of_role ? where.role : ""), with, patience);
  const Result<HttpResponse> keys = co_await ask_nearby(loop, std::move(last), token);
  if (!keys || keys->status == 404) co_return Maybe();
  // Another cloud's metadata service answers 4xx to an unknown path: then there are no keys. But a service that has
  // named a role must give the role's keys.
  if (!of_role && keys->status >= 400 && keys->status < 500) co_return Maybe();
  const std::string from = "this machine's role" + (of_role ? " " + where.role : "");
  if (!keys->ok())
    co_return make_error(ErrorKind::auth,
                         fmt::format("{}: the metadata service answers with status {}", from, keys->status),
                         "give this machine a role in the provider's console, or set keys in the environment");
  RILLE_CO_TRY(const Value document, Value::from_json(keys->body));
  RILLE_CO_TRY(FoundKeys found, read_keys(where.member.empty() ? document : document[where.member], where.names, from));
  co_return found;
}

KeySource keys_of_machine(Loop& loop, MachineKeys where) {
  return {"this machine's role", [&loop, where](CancelToken token) { return ask_machine(loop, where, token); }};
}

Result<std::string> read_token(const std::string& file, const std::string& named_by) {
  Result<std::string> text = store::read_file(file, token_bytes_max);
  if (!text) {
    Error e = std::move(text).error();
    e.hint = named_by + " names this file";
    return e;
  }
  std::string token = trimmed(*text);
  if (token.empty() || token.find_first_of("\r\n") != std::string::npos)
    return make_error(ErrorKind::auth, file + " has no token", named_by + " names this file");
  return token;
}

Error without_secrets(Error error, std::vector<std::string> secrets) {
  std::sort(secrets.begin(), secrets.end(), [](const std::string& a, const std::string& b) {
    return a.size() > b.size();  // longest first, because one secret may be a prefix of another
  });
  for (const std::string& secret : secrets)
    for (std::string* text : {&error.message, &error.hint})
      for (std::size_t at = 0; !secret.empty() && (at = text->find(secret, at)) != std::string::npos;) {
        text->replace(at, secret.size(), blot);
        at += blot.size();
      }
  if (error.cause) error.cause = std::make_shared<const Error>(without_secrets(*error.cause, std::move(secrets)));
  return error;
}

Async<Value> ask_loan(Loop& loop, Loan loan, CancelToken token) {
  CredentialChain chain(loop, loan.options.provider, std::move(loan.who), "");
  Api api(loop, std::move(loan.options), chain);
  Result<Value> answer = co_await api.call(loan.operation, std::move(loan.parts), loan.effect, token);
  if (answer || token.cancelled()) co_return answer;
  Error e = std::move(answer).error();
  // A refused key exchange is an `auth` error, whatever kind the service's code has.
  if (e.kind == ErrorKind::invalid || e.kind == ErrorKind::state || e.kind == ErrorKind::capacity)
    e.kind = ErrorKind::auth;
  if (e.hint.empty())
    e.hint = fmt::format("does the role exist, and does it trust the caller? docs/manual/providers/{}.md", e.provider);
  co_return without_secrets(std::move(e), std::move(loan.secrets));
}

}  // namespace rille::net
