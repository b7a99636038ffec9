// HttpClient::send: its attempts, its redirects and the waits between attempts.
#include "runtime/core/net/http.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "runtime/core/net/http_core.hpp"
#include "runtime/core/net/redact.hpp"
#include "runtime/core/net/server.hpp"

namespace rille::net {

namespace {

struct Url {
  std::string text, scheme, host, port;
  bool same_origin(const Url& o) const { return scheme == o.scheme && host == o.host && port == o.port; }
};

// Resolves the URL `reference` against the URL `base`; the result is empty if either is malformed.
Url resolve(const std::string& base, const std::string& reference) {
  std::unique_ptr<CURLU, void (*)(CURLU*)> handle(curl().url(), curl().url_cleanup);
  Url out;
  if (curl().url_set(handle.get(), CURLUPART_URL, base.c_str(), 0) != CURLUE_OK) return out;
  if (!reference.empty() && curl().url_set(handle.get(), CURLUPART_URL, reference.c_str(), 0) != CURLUE_OK) return out;
  auto part = [&](CURLUPart which) {
    char* text = nullptr;
    curl().url_get(handle.get(), which, &text, CURLU_DEFAULT_PORT);
    std::string copy = text ? text : "";
    curl().free(text);
    return copy;
  };
  out = {part(CURLUPART_URL), part(CURLUPART_SCHEME), part(CURLUPART_HOST), part(CURLUPART_PORT)};
  return out;
}

bool is_redirect(const HttpRequest& request, const HttpResponse& response) {
  static constexpr std::array<int, 5> statuses = {301, 302, 303, 307, 308};
  return (request.method == "GET" || request.method == "HEAD") && !response.header("location").empty() &&
         std::find(statuses.begin(), statuses.end(), response.status) != statuses.end();
}

Error redirect_error(const HttpRequest& request, const std::string& why) {
  return make_error(ErrorKind::network, fmt::format("{} {}: {}", request.method, redact_url(request.url), why))
      .with_operation("http");
}

// Changes the request's URL to the one in the response's Location header.
Result<> follow(HttpRequest& request, const HttpResponse& response) {
  Url from = resolve(request.url, ""), to = resolve(request.url, response.header("location"));
  if (to.scheme != "http" && to.scheme != "https")
    return redirect_error(request, fmt::format("redirected to '{}', which is not an http(s) URL",
                                               redact_url(response.header("location"))));
  if (from.scheme == "https" && to.scheme == "http")
    return redirect_error(request, "redirected from https to plain http: " + redact_url(to.text))
        .with_hint("use the final https URL, or the http one if you trust it");
  if (!from.same_origin(to)) std::erase_if(request.headers, [](const auto& h) { return is_secret_header(h.first); });
  request.url = to.text;
  return success();
}

bool is_transient(int status) {
  return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

}  // namespace

std::string HttpResponse::header(std::string_view lower_case_name) const {
  for (const auto& [name, value] : headers)
    if (name == lower_case_name) return value;
  return {};
}

HttpClient::HttpClient(Loop& loop, HttpOptions options) : core_(std::make_shared<Core>(loop, std::move(options))) {}
HttpClient::~HttpClient() = default;
Loop& HttpClient::loop() { return core_->loop(); }

// Makes one attempt and follows redirects. `request` is a copy, because a redirect changes it.
Async<HttpResponse> HttpClient::attempt(std::shared_ptr<Core> core, HttpRequest request, CancelToken token,
                                        Outcome& outcome) {
  if (request.prepare) {
    auto prepared = request.prepare(request);
    outcome.final |= !prepared;
    RILLE_CO_CHECK(std::move(prepared));
  }
  for (int hops = 0;; ++hops) {
    if (request.may_connect) {
      const Url to = resolve(request.url, "");
      auto allowed = request.may_connect(to.host, to.port);
      outcome.final |= !allowed;
      RILLE_CO_CHECK(std::move(allowed));
    }
    std::optional<Result<HttpResponse>> answer;
    {
      Transfer transfer(core, request, outcome);
      answer.emplace(co_await transfer.run(token));
    }
    if (!*answer || !is_redirect(request, **answer)) co_return std::move(*answer);
    if (hops == request.redirects_max)
      co_return redirect_error(request, fmt::format("more than {} redirects", request.redirects_max));
    RILLE_CO_CHECK(follow(request, **answer));
  }
}

Result<Server> server_of(const std::string& url) {
  RILLE_CHECK(load_curl());
  const Url at = resolve(url, "");
  if ((at.scheme != "http" && at.scheme != "https") || at.host.empty())
    return make_error(ErrorKind::invalid, fmt::format("'{}' is not an http(s) URL", redact_url(url)));
  return Server{at.host, at.port};
}

// Milliseconds to wait before the next attempt; -1: make no further attempt.
std::int64_t HttpClient::wait_before_next(Core& core, const HttpRequest& request, const Outcome& outcome, int attempts,
                                          const Result<HttpResponse>& answer) {
  if (attempts >= request.retry.attempts || outcome.delivered || outcome.final) return -1;
  bool again = answer ? is_transient(answer->status) && is_idempotent(request) : answer.error().retryable;
  if (!again) return -1;
  std::int64_t asked = answer ? parse_retry_after_ms(answer->header("retry-after"), core.loop().clock().wall_us()) : -1;
  if (asked > request.retry.retry_after_max_ms) return -1;
  std::int64_t most = std::min(request.retry.cap_ms, request.retry.base_ms << std::min(attempts - 1, 20));
  auto jitter = static_cast<std::int64_t>(core.random(static_cast<std::uint64_t>(std::max<std::int64_t>(most, 0)) + 1));
  return std::max(asked, jitter);
}

Async<HttpResponse> HttpClient::send(HttpRequest request, CancelToken token) {
  RILLE_CO_CHECK(load_curl());
  std::shared_ptr<Core> core = core_;
  for (int attempts = 1;; ++attempts) {
    Outcome outcome;
    std::optional<Result<HttpResponse>> answer;
    answer.emplace(co_await attempt(core, request, token, outcome));
    std::int64_t wait_ms = wait_before_next(*core, request, outcome, attempts, *answer);
    if (wait_ms < 0) {
      if (*answer) (*answer)->attempts = attempts;
      else if (attempts > 1) answer->error().message += fmt::format(" (after {} attempts)", attempts);
      co_return std::move(*answer);
    }
    std::string why = *answer ? fmt::format("status {}", (*answer)->status) : answer->error().message;
    core->options().log.info(fmt::format("http: {} {}: {}; attempt {} of {} in {}", request.method,
                                         redact_url(request.url), why, attempts + 1, request.retry.attempts,
                                         format_duration_ms(wait_ms)));
    RILLE_CO_CHECK(co_await sleep_for(core->loop(), wait_ms, token));
  }
}

std::int64_t parse_retry_after_ms(std::string_view value, std::int64_t wall_us) {
  std::int64_t seconds = 0;
  auto [end, failed] = std::from_chars(value.data(), value.data() + value.size(), seconds);
  if (failed == std::errc() && end == value.data() + value.size() && seconds >= 0)
    return std::min<std::int64_t>(seconds, 1'000'000'000) * 1000;
  if (!load_curl()) return -1;
  const std::int64_t at = curl().getdate(std::string(value).c_str(), nullptr);
  if (value.empty() || at < 0) return -1;
  constexpr std::int64_t at_most = 1'000'000'000'000;  // the year 33658
  return std::max<std::int64_t>(0, std::min(at, at_most) * 1000 - wall_us / 1000);
}

// The beginning of a response on one line, without the secrets that the request contained.
static std::string first_words(const HttpRequest& request, std::string body) {
  constexpr std::size_t shown_max = 300;
  body.resize(std::min<std::size_t>(body.size(), 4096));
  for (const auto& [name, secret] : request.headers) {
    if (!is_secret_header(name) || secret.size() < 4) continue;
    std::string_view bare =
        // skip the scheme, because the server may repeat "Bearer abc" as "abc"
        std::string_view(secret).substr(secret.find(' ') + 1);
    for (std::size_t at; bare.size() >= 4 && (at = body.find(bare)) != std::string::npos;)
      body.replace(at, bare.size(), "***");
  }
  for (char& c : body)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  if (body.size() <= shown_max) return body;
  body.resize(shown_max);
  while (!body.empty() && (static_cast<unsigned char>(body.back()) & 0xc0) == 0x80) body.pop_back();
  // remove the incomplete UTF-8 character at the end
  if (!body.empty() && static_cast<unsigned char>(body.back()) >= 0xc0) body.pop_back();
  return body + "...";
}

Error status_error(const HttpRequest& request, const HttpResponse& response) {
  int status = response.status;
  const bool unheard = status < 200 || (status >= 300 && status < 400);  // a redirect that this client does not follow
  ErrorKind kind = status >= 500 || unheard ? ErrorKind::network
                   : status >= 400          ? ErrorKind::invalid
                                            : ErrorKind::internal;
  std::string hint = unheard ? "use the address that answers with the content itself" : "";
  if (status == 401 || status == 403) kind = ErrorKind::auth, hint = "check the credentials and their rights";
  if (status == 408 || status == 504) kind = ErrorKind::timeout;
  if (status == 429) kind = ErrorKind::quota, hint = "the server limits the rate of requests; wait and try again";
  if (status == 404 || status == 410) kind = ErrorKind::state, hint = "check the URL: the server has removed that page";
  if (status == 409 || status == 412) kind = ErrorKind::state;
  if (status == 407) kind = ErrorKind::auth, hint = "check the credentials of the proxy";
  // Leave an HTML page out of the message: it adds nothing to the status.
  bool page = response.header("content-type").starts_with("text/html") || response.body.starts_with("<!DOCTYPE");
  std::string words = page ? "" : first_words(request, response.body);
  Error e = make_error(kind,
                       fmt::format("{} {}: status {}{}{}", request.method, redact_url(request.url), status,
                                   words.empty() ? "" : ": ", words),
                       std::move(hint));
  e.operation = "http";
  e.http_status = status;
  e.retryable = is_transient(status);
  e.retry_after_ms = parse_retry_after_ms(response.header("retry-after"), system_clock().wall_us());
  for (std::string_view name : {"x-request-id", "x-amzn-requestid", "x-amz-request-id", "x-ms-request-id"})
    if (e.request_id.empty()) e.request_id = response.header(name);
  return e;
}

}  // namespace rille::net
