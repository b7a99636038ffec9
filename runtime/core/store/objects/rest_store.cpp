#include "runtime/core/store/objects/rest_store.hpp"

#include <fmt/format.h>

#include <unordered_set>

#include "runtime/core/net/content.hpp"
#include "runtime/core/net/redact.hpp"
#include "runtime/core/store/objects/answers.hpp"

namespace rille::objects {

namespace {

constexpr int stuck_max = 8;        // continuations in a row without a byte
constexpr int pages_max = 100'000;  // of one list: a hundred million objects
constexpr int range_status = 416;

}  // namespace

// A get as it proceeds; its request is made anew for each attempt and continuation.
struct RestStore::Reading {
  std::string key;
  GetRequest asked;
  Sink sink;
  ObjectInfo info;           // known from the first answer on
  std::int64_t done = 0;     // bytes passed to the sink
  std::int64_t wanted = -1;  // bytes in all; -1: not known yet
  bool stopped = false;      // the sink wants no more
  std::int64_t from() const { return asked.offset + done; }
  bool ranged() const { return from() > 0 || asked.length >= 0; }
};

Call RestStore::call_of(std::string operation, const std::string& key, std::function<net::Parts()> parts) const {
  Call call;
  call.operation = std::move(operation);
  call.address = address(key);
  call.parts = std::move(parts);
  return call;
}

ObjectInfo RestStore::info_in(const std::string& key, const net::HttpResponse& response) const {
  ObjectInfo info;
  info.key = key;
  info.version = version_in(response);
  info.content_type = response.header("content-type");
  info.modified_wall_us = time_in(response.header("last-modified"));
  const std::string range = response.header("content-range");
  info.size_bytes = range.empty() ? net::size_in(response.header("content-length")) : net::content_range(range).total;
  return info;
}

Async<ObjectInfo> RestStore::head(std::string key, CancelToken token) {
  RILLE_CO_CHECK(check_key(key));
  const auto head_parts = [this, key] { return object_parts("HEAD", key, ""); };
  Result<net::HttpResponse> answer = co_await rest_.send(call_of("head", key, head_parts), token);
  if (!answer && answer.error().code.empty() && answer.error().http_status >= 400 && answer.error().http_status < 500) {
    // The answer to HEAD has no body that says what was wrong, so the same is asked as GET, for one byte.
    const auto byte_parts = [this, key] {
      net::Parts parts = bytes_parts(key, "");
      parts.set_header("Range", "bytes=0-0");
      return parts;
    };
    Result<net::HttpResponse> told = co_await rest_.send(call_of("head", key, byte_parts), token);
    if (told || told.error().http_status != range_status) answer = std::move(told);
  }
  if (!answer) co_return std::move(answer).error();
  ObjectInfo info = info_in(key, *answer);
  if (info.size_bytes < 0) co_return bad_answer("it does not tell the size of " + address(key));
  co_return info;
}

Call RestStore::reading_call(Reading& reading) {
  Call call = call_of("get", reading.key, [this, &reading] {
    const std::string& known = reading.info.version;
    net::Parts parts = bytes_parts(reading.key, known.empty() ? reading.asked.if_match : known);
    if (!reading.ranged()) return parts;
    std::string range = fmt::format("bytes={}-", reading.from());
    if (reading.asked.length >= 0) range += std::to_string(reading.asked.offset + reading.asked.length - 1);
    parts.set_header("Range", range);
    return parts;
  });
  call.reads = true;
  call.on_head = [this, &reading](const net::HttpResponse& head) -> Result<> {
    ObjectInfo info = info_in(reading.key, head);
    // rclone's server answers a range with 200.
    const bool part = head.status == 206 || (head.status == 200 && !head.header("content-range").empty());
    const std::int64_t from = part ? net::content_range(head.header("content-range")).from : 0;
    if (from != reading.from() || info.size_bytes < from || (!part && head.status != 200))
      return bad_answer(fmt::format("it is not the part of {} that was asked for", address(reading.key)));
    const bool other = !reading.info.version.empty() &&
                       (info.version != reading.info.version || info.size_bytes != reading.info.size_bytes);
    const bool unwanted = !reading.asked.if_match.empty() && info.version != reading.asked.if_match;
    if (other || unwanted)
      return make_error(ErrorKind::integrity,
                        fmt::format("get {}: the object changed while it was read", address(reading.key)),
                        "read it again from the start, or write new objects under new keys");
    const std::int64_t rest = info.size_bytes - reading.asked.offset;
    reading.wanted = reading.asked.length < 0 ? rest : std::min(reading.asked.length, rest);
    reading.info = std::move(info);
    return success();
  };
  call.sink = [this, &reading](std::string_view piece) -> Result<> {
    if (static_cast<std::int64_t>(piece.size()) > reading.wanted - reading.done)
      return bad_answer(fmt::format("it has more bytes of {} than it announced", address(reading.key)));
    if (Result<> taken = reading.sink(piece); !taken) {
      reading.stopped = true;
      return taken;
    }
    reading.done += static_cast<std::int64_t>(piece.size());
    return success();
  };
  return call;
}

Async<ObjectInfo> RestStore::get(std::string key, GetRequest request, Sink sink, CancelToken token) {
  RILLE_CO_CHECK(check_key(key));
  if (request.offset < 0 || request.length < -1)
    co_return make_error(ErrorKind::invalid, "get: the offset and the length of a range cannot be negative");
  if (request.length == 0) co_return co_await head(std::move(key), std::move(token));
  Reading reading;
  reading.key = key;
  reading.asked = request;
  reading.sink = std::move(sink);
  for (int stuck = 0; stuck <= stuck_max;) {
    const std::int64_t before = reading.done;
    Call call = reading_call(reading);
    Result<net::HttpResponse> answer = co_await rest_.send(std::move(call), token);
    if (answer && reading.done == reading.wanted) co_return std::move(reading.info);
    if (!answer && answer.error().http_status == range_status && reading.done == 0) {
      // No byte is at the offset: right where the object ends, else a mistake of the caller.
      RILLE_CO_TRY(ObjectInfo info, co_await head(key, token));
      if (!request.if_match.empty() && info.version != request.if_match)
        co_return make_error(ErrorKind::integrity,
                             fmt::format("get {}: the object is not the version asked for", address(key)));
      if (request.offset <= info.size_bytes) co_return info;
      co_return make_error(ErrorKind::invalid, fmt::format("get {}: the offset {} is beyond its {} bytes", address(key),
                                                           request.offset, info.size_bytes));
    }
    const bool cut = (answer || answer.error().retryable) && !reading.stopped;
    if (!cut || reading.info.version.empty()) {
      if (answer) co_return bad_answer(fmt::format("it ends after {} bytes of {}", reading.done, address(key)));
      co_return std::move(answer).error();
    }
    stuck = reading.done > before ? 0 : stuck + 1;
    if (stuck > stuck_max && !answer) co_return std::move(answer).error();
  }
  co_return make_error(ErrorKind::network, fmt::format("get {}: the transfer is cut off again and again", address(key)),
                       "check the network between this machine and the store, then try again")
      .with_retry();
}

Async<std::optional<net::HttpResponse>> RestStore::send_end(Call call, std::string key, std::int64_t size_bytes,
                                                            ObjectInfo& info, CancelToken token) {
  bool unknown = false;
  call.once = true;
  call.unknown = &unknown;
  Result<net::HttpResponse> answer = co_await rest_.send(std::move(call), token);
  if (answer) co_return std::optional(std::move(*answer));
  const Error& e = answer.error();
  if (!unknown || (!is_missing(e) && e.code != "InvalidBlockList")) co_return std::move(answer).error();
  Result<ObjectInfo> there = co_await head(key, token);
  if (!there || there->size_bytes != size_bytes) co_return std::move(answer).error();
  info = std::move(*there);
  co_return std::optional<net::HttpResponse>();
}

Async<> RestStore::remove(std::string key, CancelToken token) {
  RILLE_CO_CHECK(check_key(key));
  const auto parts = [this, key] { return object_parts("DELETE", key, ""); };
  Result<net::HttpResponse> answer = co_await rest_.send(call_of("delete", key, parts), token);
  if (answer) co_return success();
  // Some stores answer 404 for an object that is not there. A bucket that is not there is an error.
  const Error& e = answer.error();
  if (is_missing(e) && e.code != "NoSuchBucket" && e.code != "ContainerNotFound") co_return success();
  co_return std::move(answer).error();
}

Async<> list_all(ObjectStore& store, ListRequest request, std::function<Result<>(const ListPage&)> each,
                 CancelToken token) {
  std::unordered_set<std::string> seen;
  for (int pages = 0; pages < pages_max; ++pages) {
    RILLE_CO_TRY(const ListPage page, co_await store.list(request, token));
    RILLE_CO_CHECK(each(page));
    if (page.next_token.empty()) co_return success();
    if (!seen.insert(page.next_token).second)
      co_return bad_answer(fmt::format("the list of {} goes round in a circle", store.address(request.prefix)));
    request.token = page.next_token;
  }
  co_return make_error(ErrorKind::quota,
                       fmt::format("the list of {} has more than {} pages", store.address(request.prefix), pages_max),
                       "list it by shorter prefixes");
}

}  // namespace rille::objects
