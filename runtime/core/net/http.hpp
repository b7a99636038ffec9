// HttpClient: HTTP on libcurl's multi interface, driven by the runtime's loop. One client per runtime; it keeps
// connections open for reuse. TLS 1.2 or later, always verified. Proxies come from the usual environment variables.
//
// send() returns the response for every status; only failed transfers are errors. status_error() turns an unexpected
// status into an error. Errors name the method and the redacted URL:
//   network    not reached, cut off, TLS refused, too many redirects, or larger than response_bytes_max
//   timeout    connect, stall or total limit; the message says which limit
//   cancelled  the token's reason
//   invalid    not an http(s) URL
//   and the error that prepare, at_send, on_head, sink or body_read returned.
// `retryable` on an error of send means that sending again is safe: the request never left this machine, or is
// idempotent.
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
  Headers headers;   // headers of the last response after redirects; names in lower case
  std::string body;  // empty if the body went to `sink`
  std::string url;   // the URL after redirects; may contain secrets: show redact_url(url)
  int attempts = 1;

  bool ok() const { return status >= 200 && status < 300; }
  std::string header(std::string_view lower_case_name) const;  // the first header of that name; "" if there is none
};

// When to try again. The wait before attempt n is random in [0, min(cap_ms, base_ms * 2^n)] (full jitter: M. Brooker,
// AWS Architecture Blog, 2015), but at least the server's Retry-After.
struct Retry {
  int attempts = 4;  // number of attempts, including the first; 1: no retry
  std::int64_t base_ms = 250, cap_ms = 20'000;
  // if the server asks for a longer wait, its response is returned without a retry
  std::int64_t retry_after_max_ms = 60'000;
};

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  Headers headers;
  std::string body;
  // Reads a body that is not in memory: body_bytes bytes in ascending order, from the start again on a retry.
  std::function<Result<>(std::uint64_t offset, char* out, std::size_t size)> body_read;
  std::int64_t body_bytes = 0;

  std::int64_t connect_timeout_ms = 15'000;
  std::int64_t stall_timeout_ms = 60'000;      // longest time without a byte in either direction; 0: no limit
  std::int64_t total_timeout_ms = 0;           // limit of one attempt; 0: no limit
  std::int64_t response_bytes_max = 64 << 20;  // largest response body; 0: no limit
  // only GET and HEAD are redirected; secret headers are not sent to another server; never from https to http
  int redirects_max = 5;
  bool path_as_is = false;  // keep "." and ".." in the path, as a store's key may have them

  Retry retry;
  // Whether the request may be sent twice. Not set: true for GET, HEAD, PUT, DELETE and OPTIONS. Set it for a POST with
  // an idempotency token. Other requests are sent again only if they never left this machine.
  std::optional<bool> idempotent;

  // Called before every attempt, for signatures that contain a time and for checks that must hold at each send. If it
  // returns an error, send() ends with that error.
  std::function<Result<>(HttpRequest& attempt)> prepare;
  // Called before every connection, also after a redirect. If it returns an error, send() ends with that error.
  std::function<Result<>(const std::string& host, const std::string& port)> may_connect;
  // Called once the connection is established and before the first byte, also after a redirect, because name
  // resolution, proxies and handshakes may have taken long. If it returns an error, nothing is sent and send() ends.
  std::function<Result<>()> at_send;
  // With `sink`, the body of a 2xx response is passed to it in pieces, after `on_head` has received status and headers.
  // Once `sink` has received a byte, the request is not retried.
  std::function<Result<>(const HttpResponse& head)> on_head;
  std::function<Result<>(std::string_view piece)> sink;
  // Asked before each piece for `sink`: how many milliseconds the transfer pauses before it is asked again; 0: the
  // piece is passed on. A pause is no stall.
  std::function<std::int64_t()> pace_ms;
};

struct HttpOptions {
  std::string ca_file;                         // "": $SSL_CERT_FILE, $CURL_CA_BUNDLE, or the distribution's CA file
  std::string client_certificate, client_key;  // PEM files, for TLS client authentication; "": none
  bool proxy_from_environment = true;
  int connections_max = 64, connections_per_host_max = 16;
  std::uint64_t jitter_seed = 0;  // seed for the random waits; 0: a random seed
  Log log;                        // receives a debug line per attempt
};

struct Outcome;  // defined in http_core.hpp

class HttpClient {
 public:
  HttpClient(Loop& loop, HttpOptions options = {});
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // In a coroutine, make the request a named variable: GCC 12 miscompiles `co_await send({.url = ...})` (PR 98401:
  // braced temporaries in an awaited call are copied as bytes and freed twice). This holds for every awaited call.
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

// The error for an unexpected status. Its kind: auth for 401 403, timeout for 408 504, quota for 429, state for 404 409
// 410 412, invalid for other 4xx, network for 3xx and for 5xx (retryable). The message has the status and the beginning
// of the body; the hint says what to do.
Error status_error(const HttpRequest& request, const HttpResponse& response);

// Milliseconds from now for "120" (seconds) or an HTTP date; 0 for a date in the past; -1: neither form.
std::int64_t parse_retry_after_ms(std::string_view value, std::int64_t wall_us);

}  // namespace rille::net
