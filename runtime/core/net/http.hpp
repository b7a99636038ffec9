// HttpClient: HTTP on libcurl's multi interface, driven by the runtime's loop. One client per runtime; it keeps
// connections open for reuse. TLS 1.2 or later, always verified. Proxies come from the usual environment variables.
//
// send() returns the response for every status; only failed transfers are errors. status_error() turns an unexpected
// status into an error. Errors name the method and the redacted URL:
//   network    not reached, cut off, TLS refused, too many redirects, or larger than response_bytes_max
//   timeout    connect, stall or total limit; the message names which
//   cancelled  the token's reason
//   invalid    not an http(s) URL
//   and the error that prepare, at_send, on_head, sink or body_read returned.
// `retryable` on an error of send means that sending again is safe: the request never left, or is idempotent.
// Loop thread only. The client must outlive its sends; destroying a sending task ends its transfer.
// A request's callbacks run on the loop thread inside libcurl: they must not destroy the task that sends it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/core/base/log.hpp"
#include "runtime/core/loop/loop.hpp"

namespace rille::net {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpResponse {
  int status = 0;
  Headers headers;   // names in lower case; of the last response after redirects
  std::string body;  // empty if it went to the sink
  std::string url;   // after redirects; may contain secrets: show redact_url(url)
  int attempts = 1;

  bool ok() const { return status >= 200 && status < 300; }
  std::string header(std::string_view lower_case_name) const;  // the first header of that name, or ""
};

// The wait between attempts is random in [0, min(cap, base * 2^n)] (full jitter: M. Brooker, AWS Architecture Blog,
// 2015), but at least the server's Retry-After.
struct Retry {
  int attempts = 4;  // including the first; 1: no retry
  std::int64_t base_ms = 250, cap_ms = 20'000;
  std::int64_t retry_after_max_ms = 60'000;  // a longer Retry-After: no retry, its response is returned
};

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  Headers headers;
  std::string body;
  // Reads a body that is not in memory: body_bytes bytes in order, from the start again on a retry.
  std::function<Result<>(std::uint64_t offset, char* out, std::size_t size)> body_read;
  std::int64_t body_bytes = 0;

  std::int64_t connect_timeout_ms = 15'000;
  std::int64_t stall_timeout_ms = 60'000;      // without a byte in either direction; 0: no limit
  std::int64_t total_timeout_ms = 0;           // of one attempt; 0: no limit
  std::int64_t response_bytes_max = 64 << 20;  // 0: no limit
  int redirects_max = 5;  // GET and HEAD only; secret headers stay with their origin; never https -> http

  Retry retry;
  // Default: GET, HEAD, PUT, DELETE and OPTIONS are. Set it for a POST with an idempotency token. Other requests are
  // sent again only if they never left this machine.
  std::optional<bool> idempotent;

  // Called before every attempt, for signatures that contain a time and for checks that must hold at each send. An
  // error ends the send.
  std::function<Result<>(HttpRequest& attempt)> prepare;
  // Called once the connection is established and before the first byte, also after a redirect: name resolution,
  // proxies and handshakes may have taken long. An error ends the send with nothing sent.
  std::function<Result<>()> at_send;
  // With a sink the body of a 2xx response is delivered in pieces; on_head gets status and headers first. After the
  // first delivered byte the send is not retried.
  std::function<Result<>(const HttpResponse& head)> on_head;
  std::function<Result<>(std::string_view piece)> sink;
};

struct HttpOptions {
  std::string ca_file;                         // "": $SSL_CERT_FILE, $CURL_CA_BUNDLE, or the distribution's
  std::string client_certificate, client_key;  // PEM, for client authentication
  bool proxy_from_environment = true;
  int connections_max = 64, connections_per_host_max = 16;
  std::uint64_t jitter_seed = 0;  // 0: random
  Log log;                        // debug: one line per attempt
};

struct Outcome;  // http_core.hpp

class HttpClient {
 public:
  HttpClient(Loop& loop, HttpOptions options = {});
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // In a coroutine, name the request first: GCC 12 miscompiles `co_await send({.url = ...})` (PR 98401: braced
  // temporaries in an awaited call are copied as bytes and freed twice). This holds for every awaited call.
  Async<HttpResponse> send(HttpRequest request, CancelToken token = {});
  Loop& loop();

 private:
  class Core;
  class Transfer;
  static Async<HttpResponse> attempt(std::shared_ptr<Core> core, HttpRequest request, CancelToken token,
                                     Outcome& outcome);
  static std::int64_t wait_before_next(Core& core, const HttpRequest& request, const Outcome& outcome, int attempts,
                                       const Result<HttpResponse>& answer);
  std::shared_ptr<Core> core_;
};

// The error for an unexpected status: auth 401 403, timeout 408 504, quota 429, state 404 409 410 412, invalid for
// other 4xx, network (retryable) for 5xx. The message has the status and the beginning of the body, the hint a next
// step.
Error status_error(const HttpRequest& request, const HttpResponse& response);

// Milliseconds from now for "120" (seconds) or an HTTP date; -1: neither. Dates in the past give 0.
std::int64_t parse_retry_after_ms(std::string_view value, std::int64_t wall_us);

}  // namespace rille::net
