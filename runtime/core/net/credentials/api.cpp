#include "runtime/core/net/credentials/api.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "runtime/core/base/send_by.hpp"

namespace rille::net {

namespace {

constexpr int attempts_max = 5, open_attempts_max = 3;
constexpr std::int64_t base_ms = 500, cap_ms = 20'000, retry_after_max_ms = 60'000;
constexpr std::int64_t skew_ignored_us = 2'000'000;
// a skew near the five minutes from which services refuse a request
constexpr std::int64_t skew_refused_us = 240'000'000;

// 499 is nginx's status for a closed connection
constexpr int proxy_status = 407, too_late_status = 408, hung_up_status = 499;
constexpr const char* proxy_hint =
    "perhaps a proxy or a network's login page answered instead: check http_proxy, https_proxy and no_proxy";

// The trouble of an error code that no table lists. A call with a lasting effect counts as refused only if the answer
// has the service's format: a proxy may answer 4xx although the service has made the change.
Trouble by_status(int status, bool foreign, Effect effect) {
  if (status == 429) return Trouble::throttle;
  if (status == too_late_status || status == hung_up_status || status >= 500) return Trouble::transient;
  const bool lasting = effect.lasts;
  if (status == proxy_status) return lasting ? Trouble::open : Trouble::auth;
  if (!lasting && (status == 401 || status == 403)) return Trouble::auth;
  if (foreign || (status >= 300 && status < 400) || (lasting && status < 300)) return Trouble::open;
  if (status == 401 || status == 403) return Trouble::auth;
  if (status == 404) return Trouble::not_found;
  return status == 409 ? Trouble::conflict : Trouble::invalid;
}

std::string words_of(const HttpResponse& response, const Answer& answer, const std::string& provider) {
  if (response.status == proxy_status) return "the proxy requires authentication: HTTP status 407";
  if (answer.foreign && response.ok()) return "the response is not a valid " + provider + " response";
  if (answer.foreign || answer.message.empty()) return fmt::format("HTTP status {}", response.status);
  return answer.message;
}

// The hint for an error code whose Meaning has no hint.
std::string usual_hint(Trouble trouble, const std::string& provider) {
  switch (trouble) {
    case Trouble::capacity: return "try another region or type: `rille offers`";
    case Trouble::quota: return "request a higher quota, or use another region";
    case Trouble::auth:
      return "check that the keys are valid and have the permission for this call: docs/manual/providers/" + provider +
             ".md";
    case Trouble::expired: return "get new temporary keys, or sign in again";
    case Trouble::clock: return "set this machine's clock";
    case Trouble::throttle: return "too many calls, perhaps by other users of the account: try again later";
    case Trouble::open: return proxy_hint;
    case Trouble::transient: return provider + " has a temporary failure: try again later";
    default: return "";
  }
}

bool fits(std::string_view pattern, std::string_view code) {
  return pattern.ends_with('*') ? code.starts_with(pattern.substr(0, pattern.size() - 1)) : pattern == code;
}

HttpOptions http_options(const ApiOptions& options) {
  HttpOptions out;
  out.ca_file = options.ca_file;
  out.client_certificate = options.client_certificate;
  out.client_key = options.client_key;
  return out;
}

}  // namespace

ErrorKind kind_of(Trouble trouble) {
  switch (trouble) {
    case Trouble::capacity: return ErrorKind::capacity;
    case Trouble::quota:
    case Trouble::throttle: return ErrorKind::quota;
    case Trouble::open:
    case Trouble::transient: return ErrorKind::network;
    case Trouble::auth:
    case Trouble::expired:
    case Trouble::clock: return ErrorKind::auth;
    case Trouble::not_found:
    case Trouble::conflict: return ErrorKind::state;
    case Trouble::invalid: break;
  }
  return ErrorKind::invalid;
}

const Meaning* find_meaning(std::span<const Meaning> table, std::string_view code) {
  for (const Meaning& meaning : table)
    if (fits(meaning.code, code)) return &meaning;
  return nullptr;
}

Api::Api(Loop& loop, ApiOptions options, CredentialChain& credentials)
    : loop_(loop), options_(std::move(options)), credentials_(credentials), http_(loop, http_options(options_)) {}

std::optional<std::int64_t> skew_of(const HttpResponse& response, std::int64_t now_us) {
  const std::string date = response.header("date");
  // The parser gives 0 for dates in the past, so compare the date with the time one day ago.
  constexpr std::int64_t day_us = 86'400'000'000;
  const std::int64_t ahead_ms = parse_retry_after_ms(date, now_us - day_us);
  if (date.empty() || ahead_ms < 0) return {};
  const std::int64_t skew_us = ahead_ms * 1000 - day_us;
  return std::llabs(skew_us) > skew_ignored_us ? skew_us : 0;
}

Error Api::understand(const std::string& operation, Effect effect, const HttpResponse& response, const Answer& answer,
                      Trouble& trouble) const {
  const Meaning* meaning = nullptr;
  for (const std::span<const Meaning> table : {options_.meanings, options_.common_meanings})
    if (!meaning && !answer.foreign) meaning = find_meaning(table, answer.code);
  trouble = meaning ? meaning->trouble : by_status(response.status, answer.foreign, effect);
  const std::string code = answer.foreign ? "" : answer.code;
  const bool of_proxy = response.status == proxy_status;
  // An unknown code in an answer of the service itself needs no hint about proxies.
  const bool unheard = trouble == Trouble::open && !code.empty();
  const std::string hint = of_proxy ? "check the credentials of the proxy" : meaning ? meaning->hint : "";
  Error e = make_error(kind_of(trouble),
                       fmt::format("{} {}: {}{}{}", options_.provider, operation, code, code.empty() ? "" : ": ",
                                   words_of(response, answer, options_.provider)),
                       hint.empty() && !unheard ? usual_hint(trouble, options_.provider) : hint);
  e.provider = options_.provider;
  e.operation = operation;
  e.code = answer.code;
  e.request_id = answer.request_id;
  e.http_status = trouble == Trouble::throttle ? 429 : trouble == Trouble::not_found ? 404 : response.status;
  if (trouble == Trouble::open) e.http_status = 0;  // a 404 that is not from the service says nothing about the machine
  e.retryable = trouble == Trouble::throttle || trouble == Trouble::transient || trouble == Trouble::open;
  const std::int64_t wait_ms = parse_retry_after_ms(response.header("retry-after"), loop_.clock().wall_us());
  e.retry_after_ms = std::clamp<std::int64_t>(wait_ms, 0, retry_after_max_ms);
  return e;
}

Error Api::failed_later(const std::string& operation, std::string code, std::string message) const {
  Answer answer;
  answer.code = std::move(code);
  answer.message = std::move(message);
  HttpResponse response;
  response.status = 400;  // so that a code that no table lists counts as a refusal
  Trouble trouble = Trouble::invalid;
  Error e = understand(operation, Effect::none, response, answer, trouble);
  // The operation has failed for good, so repeating the call does not help; and its "not found" does not mean the
  // machine.
  e.http_status = 0;
  e.retryable = false;
  return e;
}

Async<Value> Api::attempt(const std::string& operation, Parts parts, Effect effect, CancelToken token,
                          Trouble& trouble) {
  RILLE_CO_TRY(const FoundKeys found, co_await credentials_.get(token));
  HttpRequest request;
  parts.put_into(request);
  request.retry.attempts = 1;
  request.redirects_max = 0;
  request.total_timeout_ms = options_.timeout_ms;
  // also for PUT: libcurl must not send the request again over another connection
  if (effect.lasts) request.idempotent = false;
  const auto sign = [this, &parts, &found](HttpRequest& out) -> Result<> {
    options_.sign(parts, found.keys, now_us()).put_into(out);
    return success();
  };
  request.prepare = sign;
  if (effect.send_by_wall_us > 0)
    request.at_send = [this, effect] { return check_send_by(effect.send_by_wall_us, loop_.clock().wall_us()); };
  trouble = Trouble::transient;
  Result<HttpResponse> response = co_await http_.send(std::move(request), token);
  if (!response) {
    Error e = response.error();
    e.message = fmt::format("{} {}: {}", options_.provider, operation, e.message);
    e.provider = options_.provider;
    e.operation = operation;
    if (e.kind == ErrorKind::cancelled || e.kind == ErrorKind::config || is_late(e)) trouble = Trouble::invalid;
    co_return e;
  }
  skew_us_ = skew_of(*response, loop_.clock().wall_us()).value_or(skew_us_);
  Answer answer = options_.read(*response);
  if (!answer.of.empty() && answer.of != operation) answer.foreign = true;
  if (response->ok() && answer.code.empty() && !answer.foreign) co_return std::move(answer.value);
  co_return understand(operation, effect, *response, answer, trouble);
}

Async<Value> Api::call(std::string operation, Parts parts, Effect effect, CancelToken token) {
  bool corrected = false, renewed = false;
  std::optional<Error> open;  // the error of an earlier attempt whose effect is unknown
  for (int n = 1;; ++n) {
    Trouble trouble = Trouble::invalid;
    const std::int64_t skew_before_us = skew_us_;
    Result<Value> answer = co_await attempt(operation, parts, effect, token, trouble);
    // report the earlier attempt, because it was sent
    if (!answer && is_late(answer.error()) && open) co_return std::move(*open);
    if (answer || token.cancelled() || n == attempts_max) co_return answer;
    // Services also report clock skew as a wrong signature, invalid keys (EC2) or expired keys.
    const bool clock_told = trouble == Trouble::clock && skew_us_ != skew_before_us;
    const bool clock_seen = (trouble == Trouble::auth || trouble == Trouble::expired) &&
                            std::llabs(skew_us_ - skew_before_us) > skew_refused_us;
    if ((clock_told || clock_seen) && !corrected) {
      corrected = true;
      continue;
    }
    if (trouble == Trouble::expired && !renewed) {
      renewed = true;
      credentials_.forget();
      continue;
    }
    const bool passes = trouble == Trouble::transient || (trouble == Trouble::open && n < open_attempts_max);
    const bool again = trouble == Trouble::throttle || (passes && !effect.lasts);
    if (!again) co_return answer;
    if (passes) open = answer.error();
    const std::int64_t first_ms = trouble == Trouble::throttle ? options_.throttle_ms : base_ms;
    const std::int64_t most_ms = std::min(cap_ms, first_ms << (n - 1));
    std::uniform_int_distribution<std::int64_t> jitter(0, most_ms);
    const std::int64_t wait_ms = std::max(answer.error().retry_after_ms, jitter(dice_));
    RILLE_CO_CHECK(co_await sleep_for(loop_, wait_ms, token));
  }
}

Error not_theirs(const std::string& provider, const std::string& operation) {
  Error e =
      make_error(ErrorKind::network,
                 fmt::format("{0} {1}: the response is not a valid {0} response", provider, operation), proxy_hint)
          .with_retry();
  e.provider = provider;
  e.operation = operation;
  return e;
}

}  // namespace rille::net
