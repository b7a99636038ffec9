#include "runtime/core/store/objects/rest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "runtime/core/base/base64.hpp"
#include "runtime/core/net/credentials/api.hpp"
#include "runtime/core/net/credentials/lent_keys.hpp"
#include "runtime/core/net/redact.hpp"

namespace rille::objects {

using net::Meaning;
using net::Trouble;

namespace {

constexpr int attempts_max = 6;
constexpr std::int64_t wait_max_ms = 20'000, asked_wait_max_ms = 60'000, answer_bytes_max = 32 << 20;
constexpr std::int64_t skew_refused_us = 240'000'000;
constexpr int refused_status = 412;

constexpr const char* renew = "sign in again, or get new temporary keys";
constexpr const char* other_keys = "these keys are not known there: check which ones are used, and the endpoint";
constexpr const char* wrong_secret = "the secret key does not belong to the key id";
constexpr const char* no_right =
    "the keys need the right to do this with this bucket and key; a key that is not there may also be answered so";
constexpr const char* no_bucket = "check the bucket's name, its region and the endpoint";
constexpr const char* try_later = "the store limits the rate of requests: try again later, or with fewer at once";

// The codes of all the stores, since they take them from each other. A code that is not here is judged by the status.
constexpr Meaning meanings_of_stores[] = {
    {"NoSuchKey", Trouble::not_found},
    {"NoSuchBucket", Trouble::not_found, no_bucket},
    {"NoSuchUpload", Trouble::not_found, "the upload was ended, or completed by someone else"},
    {"BlobNotFound", Trouble::not_found},
    {"ContainerNotFound", Trouble::not_found, "check the container's name and the account"},
    {"AccessDenied", Trouble::auth, no_right},
    {"AllAccessDisabled", Trouble::auth, no_right},
    {"InvalidAccessKeyId", Trouble::auth, other_keys},
    {"SignatureDoesNotMatch", Trouble::auth, wrong_secret},
    {"AuthenticationFailed", Trouble::auth, "check the account's key, or sign in again"},
    {"AuthorizationPermissionMismatch", Trouble::auth,
     "the identity needs the role Storage Blob Data Contributor (to read: Reader) on this account or container"},
    {"AuthorizationFailure", Trouble::auth, "the account's network rules or its settings refuse this request"},
    {"ExpiredToken*", Trouble::expired, renew},
    {"InvalidAuthenticationInfo", Trouble::expired, renew},
    {"SecurityTokenExpired", Trouble::expired, renew},
    {"InvalidSecurityToken", Trouble::expired, renew},
    {"InvalidToken", Trouble::expired, renew},
    {"TokenRefreshRequired", Trouble::expired, renew},
    {"authError", Trouble::expired, renew},
    {"RequestTimeTooSkewed", Trouble::clock, "set this machine's clock"},
    {"RequestExpired", Trouble::clock, "set this machine's clock"},
    {"SlowDown*", Trouble::throttle, try_later},
    {"Throttling*", Trouble::throttle, try_later},
    {"TooManyRequests*", Trouble::throttle, try_later},
    {"QpsLimitExceeded", Trouble::throttle, try_later},
    {"RequestLimitExceeded", Trouble::throttle, try_later},
    {"ServerBusy", Trouble::throttle, try_later},
    {"rateLimitExceeded", Trouble::throttle, try_later},
    {"userRateLimitExceeded", Trouble::throttle, try_later},
    {"RequestTimeout*", Trouble::transient},
    {"OperationTimedOut", Trouble::transient},
    {"InternalError*", Trouble::transient},
    {"ServiceUnavailable*", Trouble::transient},
    {"backendError", Trouble::transient},
    {"ConditionalRequestConflict", Trouble::transient, "others write this object at the same time"},
    {"OperationAborted", Trouble::transient},
};

constexpr std::string_view refusals[] = {"PreconditionFailed", "FileAlreadyExists", "BlobAlreadyExists",
                                         "ConditionNotMet",    "conditionNotMet",   "ObjectAlreadyExists"};
constexpr std::string_view elsewhere[] = {"PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed",
                                          "IllegalLocationConstraintException", "BucketRegionError"};

template <std::size_t N>
bool is_one_of(const std::string_view (&list)[N], std::string_view code) {
  return std::find(std::begin(list), std::end(list), code) != std::end(list);
}

Trouble trouble_of_status(int status) {
  if (status == 429) return Trouble::throttle;
  if (status == 408 || status >= 500) return Trouble::transient;
  if (status == 401 || status == 403 || status == 407) return Trouble::auth;
  if (status == 404) return Trouble::not_found;
  return status == 409 ? Trouble::conflict : Trouble::invalid;
}

net::HttpOptions http_options_of(const StoreSetup& setup) {
  net::HttpOptions out;
  if (setup.log) out.log = *setup.log;
  return out;
}

// One line of UTF-8 of at most 300 bytes; what a store says may be anything.
std::string one_line(std::string text) {
  constexpr std::size_t shown_max = 300;
  const bool longer = text.size() > shown_max;
  std::size_t end = std::min(text.size(), shown_max);
  while (longer && end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  text.resize(end);
  const bool utf8 = is_utf8(text);
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = ' ';
    if (byte >= 0x80 && !utf8) c = '?';
  }
  return longer ? text + "..." : text;
}

}  // namespace

// What happened to a call so far.
struct Rest::Course {
  int attempts = 0;
  bool corrected = false, renewed = false, moved = false;
  bool unknown = false;  // an attempt may have had its effect, though no success was heard
  Trouble trouble = Trouble::invalid;
  bool region_told = false;
  net::Credentials keys;  // of the last attempt
  bool delivered = false;
};

Rest::Rest(const StoreSetup& setup, RestSetup own, net::CredentialChain chain)
    : loop_(setup.loop), own_(std::move(own)), chain_(std::move(chain)), http_(setup.loop, http_options_of(setup)),
      may_connect_(setup.may_connect), wait_ms_(setup.wait_ms), stall_timeout_ms_(setup.stall_timeout_ms) {}

std::int64_t Rest::now_us() const { return loop_.clock().wall_us() + skew_us_; }

Error Rest::understand(const Call& call, const net::HttpResponse& response, Course& course) const {
  const StoreWords words = own_.read_error(response);
  const Meaning* meaning = net::find_meaning(meanings_of_stores, words.code);
  course.trouble = meaning ? meaning->trouble : trouble_of_status(response.status);
  const bool refused = response.status == refused_status || is_one_of(refusals, words.code);
  if (refused) course.trouble = Trouble::conflict;
  const bool away = is_one_of(elsewhere, words.code) || (response.status >= 300 && response.status < 400);
  course.region_told =
      own_.follow && !words.region.empty() && !refused && (away || response.status == 400 || response.status == 403);
  std::string what = words.message.empty() ? fmt::format("HTTP status {}", response.status) : one_line(words.message);
  if (!words.code.empty()) what = words.code + ": " + what;
  std::string hint = meaning ? meaning->hint : "";
  if (away)
    hint = fmt::format("the bucket is in another region{}: add ?region=NAME to the address",
                       words.region.empty() ? "" : ", " + words.region);
  if (course.trouble == Trouble::not_found && hint.empty()) hint = "check the key: upper and lower case differ";
  if (course.trouble == Trouble::auth && hint.empty()) hint = no_right;
  if (response.status == 407) hint = "check the credentials of the proxy";
  Error e =
      make_error(net::kind_of(course.trouble), fmt::format("{} {}: {}", call.operation, call.address, what), hint);
  if (refused && call.reads) {
    e.kind = ErrorKind::integrity;
    e.message =
        fmt::format("{} {}: the object is no longer the version that was asked for", call.operation, call.address);
    e.hint = "read it again from the start, or write new objects under new keys";
  } else if (refused && course.unknown) {
    e.message += "; an earlier attempt, whose answer was lost, may have written it";
    e.hint = "read the object to see whose it is";
  } else if (refused && hint.empty()) {
    e.hint = "the object exists already, or is another version: read it, then decide";
  }
  e.provider = own_.provider;
  e.operation = call.operation;
  e.resource = call.address;
  e.code = words.code;
  e.request_id = words.request_id;
  e.http_status = refused ? refused_status : course.trouble == Trouble::not_found ? 404 : response.status;
  e.retryable = course.trouble == Trouble::throttle || course.trouble == Trouble::transient;
  e.retry_after_ms = net::parse_retry_after_ms(response.header("retry-after"), loop_.clock().wall_us());
  return net::without_secrets(std::move(e), {course.keys.secret, course.keys.token});
}

Async<net::HttpResponse> Rest::attempt(const Call& call, Course& course, CancelToken token) {
  course.trouble = Trouble::invalid;
  course.region_told = false;
  RILLE_CO_TRY(const net::FoundKeys found, co_await chain_.get(token));
  course.keys = found.keys;
  const std::int64_t body_bytes = call.body ? call.body->bytes() : -1;
  net::Parts parts = call.parts();
  if (call.body && !call.body->read) parts.body = call.body->text;
  const std::int64_t sent_bytes = body_bytes >= 0 ? body_bytes : static_cast<std::int64_t>(parts.body.size());
  RILLE_CO_TRY(net::Parts ready, own_.sign(std::move(parts), found.keys, now_us(), sent_bytes));
  net::HttpRequest request;
  ready.put_into(request);
  if (call.body && call.body->read) {
    request.body_read = call.body->read;
    request.body_bytes = call.body->size_bytes;
  }
  request.retry.attempts = 1;
  request.redirects_max = 0;
  // libcurl would repeat by itself what is idempotent, and it would not be known that there were two.
  request.idempotent = !call.once;
  request.path_as_is = true;
  request.stall_timeout_ms = stall_timeout_ms_;
  request.may_connect = may_connect_;
  request.on_head = call.on_head;
  request.response_bytes_max = call.sink ? 0 : answer_bytes_max;
  if (call.sink)
    request.sink = [&call, &course](std::string_view piece) {
      course.delivered = true;
      return call.sink(piece);
    };
  course.trouble = Trouble::transient;
  Result<net::HttpResponse> response = co_await http_.send(std::move(request), token);
  if (!response) {
    Error e = std::move(response).error();
    e.retryable |= call.once && (e.kind == ErrorKind::network || e.kind == ErrorKind::timeout);
    course.unknown |= e.retryable;
    if (!e.retryable) course.trouble = Trouble::invalid;
    if (e.operation == "http") e.message = fmt::format("{} {}: {}", call.operation, call.address, e.message);
    e.provider = own_.provider;
    e.resource = call.address;
    co_return net::without_secrets(std::move(e), {found.keys.secret, found.keys.token});
  }
  skew_us_ = net::skew_of(*response, loop_.clock().wall_us()).value_or(skew_us_);
  const bool refused_late = response->ok() && call.refused_late && !own_.read_error(*response).code.empty();
  if (response->ok() && !refused_late) co_return std::move(*response);
  const bool unknown_before = course.unknown;
  Error e = understand(call, *response, course);
  if (course.region_told) course.region_told = own_.follow(own_.read_error(*response).region);
  course.unknown = unknown_before || course.trouble == Trouble::transient;
  co_return e;
}

Rest::Next Rest::next(Course& course, const Error& error, std::int64_t skew_before_us) {
  if (error.kind == ErrorKind::cancelled || course.attempts >= attempts_max || course.delivered) return Next::end;
  if (course.region_told && !course.moved) {
    course.moved = true;
    return Next::again;
  }
  // Some stores report a clock that is off as a wrong signature, or as access denied.
  const bool clock_told = course.trouble == Trouble::clock && skew_us_ != skew_before_us;
  const bool clock_seen = (course.trouble == Trouble::auth || course.trouble == Trouble::expired) &&
                          std::llabs(skew_us_ - skew_before_us) > skew_refused_us;
  if ((clock_told || clock_seen) && !course.corrected) {
    course.corrected = true;
    return Next::again;
  }
  if (course.trouble == Trouble::expired && !course.renewed) {
    course.renewed = true;
    chain_.forget();
    return Next::again;
  }
  if (error.retry_after_ms > asked_wait_max_ms) return Next::end;
  return course.trouble == Trouble::throttle || course.trouble == Trouble::transient ? Next::wait : Next::end;
}

Async<net::HttpResponse> Rest::send(Call call, CancelToken token) {
  Course course;
  while (true) {
    const std::int64_t skew_before_us = skew_us_;
    course.delivered = false;
    ++course.attempts;
    Result<net::HttpResponse> answer = co_await attempt(call, course, token);
    if (answer) co_return answer;
    const Next then = next(course, answer.error(), skew_before_us);
    if (then == Next::end) {
      if (call.unknown) *call.unknown = course.unknown;
      co_return answer;
    }
    if (then == Next::again) continue;
    const std::int64_t most_ms = std::min(wait_max_ms, wait_ms_ << std::min(course.attempts - 1, 10));
    std::uniform_int_distribution<std::int64_t> jitter(0, std::max<std::int64_t>(most_ms, 0));
    const std::int64_t wait_ms = std::max(answer.error().retry_after_ms, jitter(dice_));
    RILLE_CO_CHECK(co_await sleep_for(loop_, wait_ms, token));
  }
}

}  // namespace rille::objects
