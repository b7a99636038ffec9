// One request and its response: sets libcurl's options, enforces the limits, and explains libcurl's errors.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "runtime/core/base/text.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/core/net/http_core.hpp"
#include "runtime/core/net/proxy.hpp"
#include "runtime/core/net/redact.hpp"

namespace rille::net {

namespace {

constexpr std::int64_t head_bytes_max = 256 << 10;
constexpr std::int64_t refusal_bytes_max = 1 << 20;  // limit for the error body of a request with a sink
constexpr int ticks_per_stall = 4;

bool has_control(std::string_view s) {
  return std::any_of(s.begin(), s.end(), [](unsigned char c) { return (c < 0x20 && c != '\t') || c == 0x7f; });
}

std::string_view trim(std::string_view s) {
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.front()))) s.remove_prefix(1);
  while (!s.empty() && std::isspace(static_cast<unsigned char>(s.back()))) s.remove_suffix(1);
  return s;
}

}  // namespace

bool is_idempotent(const HttpRequest& r) {
  static constexpr std::array<std::string_view, 5> methods = {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"};
  return r.idempotent.value_or(std::find(methods.begin(), methods.end(), r.method) != methods.end());
}

HttpClient::Transfer::Transfer(std::shared_ptr<Core> core, const HttpRequest& request, Outcome& outcome)
    : core_(std::move(core)), request_(request), outcome_(outcome), easy_(curl().easy_init()), done_(core_->loop()) {}

HttpClient::Transfer::~Transfer() {
  if (added_) core_->multi.remove(easy_);
  NoSigpipe quiet;
  curl().easy_cleanup(easy_);
  curl().slist_free_all(headers_);
}

Error HttpClient::Transfer::failure(ErrorKind kind, const std::string& what, std::string hint) {
  Error e =
      make_error(kind, fmt::format("{} {}: {}", request_.method, redact_url(request_.url), what), std::move(hint));
  e.operation = "http";
  return e;
}

Async<HttpResponse> HttpClient::Transfer::run(CancelToken token) {
  if (token.cancelled()) co_return token.reason();
  RILLE_CO_CHECK(set_up());
  response_.url = request_.url;
  if (CURLMcode rc = core_->multi.add(easy_, *this); rc != CURLM_OK)
    co_return failure(ErrorKind::internal, curl().multi_strerror(rc));
  added_ = true;
  auto registration = token.on_cancel([this](const Error& why) { fail(why); });
  if (request_.stall_timeout_ms > 0) watch_for_stall();
  co_await done_;
  stall_.reset();
  paused_.reset();
  long request_bytes = 0;
  curl().easy_getinfo(easy_, CURLINFO_REQUEST_SIZE, &request_bytes);
  outcome_.left |= request_bytes > 0;
  log_end();
  if (stopped_) {
    stopped_->retryable &= !outcome_.left || is_idempotent(request_);
    co_return std::move(*stopped_);
  }
  if (code_ != CURLE_OK) co_return curl_error();
  co_return std::move(response_);
}

void HttpClient::Transfer::finished(CURLcode code) {
  code_ = code;
  done_.set(true);
}

void HttpClient::Transfer::fail(Error why) {
  if (!stopped_) stopped_ = std::move(why);
  done_.set(true);
}

// `of_caller` is what a callback of the caller returned; an error ends the transfer.
bool HttpClient::Transfer::check(Result<> of_caller) {
  if (of_caller) return true;
  outcome_.final = true;
  fail(std::move(of_caller).error());
  return false;
}

// Checks progress four times per stall timeout, so that a stall is noticed after at most 1.25 timeouts.
void HttpClient::Transfer::watch_for_stall() {
  stall_.emplace(core_->loop(), std::max<std::int64_t>(1, request_.stall_timeout_ms / ticks_per_stall), [this] {
    curl_off_t down = 0, up = 0;
    long head = 0;
    curl().easy_getinfo(easy_, CURLINFO_SIZE_DOWNLOAD_T, &down);
    curl().easy_getinfo(easy_, CURLINFO_SIZE_UPLOAD_T, &up);
    curl().easy_getinfo(easy_, CURLINFO_HEADER_SIZE, &head);
    std::int64_t moved = down + up + head;
    still_ticks_ = moved == moved_before_ && !paused_ ? still_ticks_ + 1 : 0;
    moved_before_ = moved;
    if (still_ticks_ < ticks_per_stall) return watch_for_stall();
    Error e = failure(ErrorKind::timeout,
                      fmt::format("the transfer stalled: no byte was sent or received for {}",
                                  format_duration_ms(request_.stall_timeout_ms)),
                      "check the network between this machine and the server, then try again");
    fail(std::move(e).with_retry());
  });
}

Result<> HttpClient::Transfer::set_up() {
  bool web = request_.url.starts_with("http://") || request_.url.starts_with("https://");
  if (!web || has_control(request_.url) || request_.method.empty() || has_control(request_.method))
    return failure(ErrorKind::invalid, "not an http:// or https:// URL",
                   "write the whole URL, such as https://example.org/data.tar, without control characters");
  const HttpOptions& options = core_->options();
  auto set = [this](CURLoption option, auto value) { curl().easy_setopt(easy_, option, value); };
  set(CURLOPT_URL, request_.url.c_str());
  if (request_.path_as_is) set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_ERRORBUFFER, text_);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  set_safely(easy_, options.ca_file);
  if (!options.client_certificate.empty()) {
    auto in_memory = [&](CURLoption option, const std::string& pem) {
      curl_blob blob{const_cast<char*>(pem.data()), pem.size(), CURL_BLOB_COPY};
      set(option, &blob);
    };
    in_memory(CURLOPT_SSLCERT_BLOB, options.client_certificate);
    in_memory(CURLOPT_SSLKEY_BLOB, options.client_key);
  }
  if (!options.proxy_from_environment) set(CURLOPT_PROXY, "");
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_USERAGENT, "rille");
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(request_.connect_timeout_ms));
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(request_.total_timeout_ms));
  // no compression with a sink: a download wants the bytes as stored, and ranges of them
  if (!request_.sink) set(CURLOPT_ACCEPT_ENCODING, "");
  else set(CURLOPT_BUFFERSIZE, 256L << 10);
  // On a reused connection libcurl repeats any request, even a POST, if the server closes before it answers.
  if (!is_idempotent(request_)) set(CURLOPT_FRESH_CONNECT, 1L);
  set(CURLOPT_HEADERDATA, static_cast<void*>(this));
  set(
      CURLOPT_HEADERFUNCTION, +[](char* p, std::size_t, std::size_t n, void* self) -> std::size_t {
        return static_cast<Transfer*>(self)->head_line({p, n}) ? n : 0;
      });
  set(CURLOPT_WRITEDATA, static_cast<void*>(this));
  set(
      CURLOPT_WRITEFUNCTION, +[](char* p, std::size_t, std::size_t n, void* self) -> std::size_t {
        auto* transfer = static_cast<Transfer*>(self);
        if (transfer->pause()) return CURL_WRITEFUNC_PAUSE;  // libcurl keeps the piece
        return transfer->body_piece({p, n}) ? n : CURL_WRITEFUNC_ERROR;
      });
  if (request_.at_send) {
    set(CURLOPT_PREREQDATA, static_cast<void*>(this));
    set(
        CURLOPT_PREREQFUNCTION, +[](void* self, char*, char*, int, int) -> int {
          auto* transfer = static_cast<Transfer*>(self);
          return transfer->check(transfer->request_.at_send()) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
        });
  }
  set_body();
  return set_headers();
}

Result<> HttpClient::Transfer::set_headers() {
  bool has_type = false;
  std::vector<std::string> lines = {"Expect:"};  // an empty Expect header: do not wait for 100-continue
  for (const auto& [name, value] : request_.headers) {
    if (name.empty() || has_control(name) || has_control(value) || name.find(':') != std::string::npos)
      return failure(
          ErrorKind::invalid,
          fmt::format("the header '{}' has characters that a header cannot have", has_control(name) ? "?" : name),
          "remove line breaks and other control characters, and colons from the name");
    has_type |= lower_case(name) == "content-type";
    lines.push_back(value.empty() ? name + ";" : name + ": " + value);
  }
  if (!has_type) lines.push_back("Content-Type:");  // otherwise libcurl would add the content type of a form
  for (const std::string& line : lines) headers_ = curl().slist_append(headers_, line.c_str());
  curl().easy_setopt(easy_, CURLOPT_HTTPHEADER, headers_);
  return success();
}

void HttpClient::Transfer::set_body() {
  auto set = [this](CURLoption option, auto value) { curl().easy_setopt(easy_, option, value); };
  bool posts = request_.method == "POST" || request_.method == "PUT" || request_.method == "PATCH";
  if (request_.body_read) {
    set(CURLOPT_UPLOAD, 1L);
    set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request_.body_bytes));
    set(CURLOPT_READDATA, static_cast<void*>(this));
    set(
        CURLOPT_READFUNCTION, +[](char* p, std::size_t size, std::size_t n, void* self) -> std::size_t {
          return static_cast<Transfer*>(self)->give_body(p, size * n);
        });
    set(CURLOPT_SEEKDATA, static_cast<void*>(this));
    set(
        CURLOPT_SEEKFUNCTION, +[](void* self, curl_off_t offset, int) -> int {
          static_cast<Transfer*>(self)->body_sent_ = static_cast<std::uint64_t>(offset);
          return CURL_SEEKFUNC_OK;
        });
  } else if (posts || !request_.body.empty()) {
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDS, request_.body.c_str());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
  }
  if (request_.method == "HEAD") set(CURLOPT_NOBODY, 1L);
  else set(CURLOPT_CUSTOMREQUEST, request_.method.c_str());
}

std::size_t HttpClient::Transfer::give_body(char* out, std::size_t room) {
  std::uint64_t left = static_cast<std::uint64_t>(request_.body_bytes) - body_sent_;
  auto n = static_cast<std::size_t>(std::min<std::uint64_t>(left, room));
  if (n == 0) return 0;
  if (!check(request_.body_read(body_sent_, out, n))) return CURL_READFUNC_ABORT;
  body_sent_ += n;
  return n;
}

bool HttpClient::Transfer::head_line(std::string_view line) {
  if (stopped_) return false;
  head_bytes_ += static_cast<std::int64_t>(line.size());
  if (head_bytes_ > head_bytes_max) {
    fail(failure(ErrorKind::network,
                 fmt::format("the response header exceeds the limit of {}", format_size_bytes(head_bytes_max)),
                 "this limit is fixed: check that the URL is the right one and that the server is sound"));
    return false;
  }
  if (line.starts_with("HTTP/")) {  // a new response begins, also after 100 Continue
    response_.headers.clear();
    head_complete_ = false;
    response_.status = 0;
    std::size_t space = std::min(line.find(' '), line.size() - 1);
    std::from_chars(line.data() + space + 1, line.data() + line.size(), response_.status);
    return true;
  }
  if (head_complete_) return true;  // ignore a trailer: it comes after the body
  std::string_view text = trim(line);
  if (!text.empty()) {
    std::size_t colon = text.find(':');
    if (colon != std::string_view::npos)
      response_.headers.emplace_back(lower_case(trim(text.substr(0, colon))), trim(text.substr(colon + 1)));
    return true;
  }
  if (response_.status < 200) return true;
  head_complete_ = true;
  return !response_.ok() || !request_.on_head || check(request_.on_head(response_));
}

bool HttpClient::Transfer::body_piece(std::string_view piece) {
  if (stopped_) return false;
  body_bytes_ += static_cast<std::int64_t>(piece.size());
  bool to_sink = request_.sink && response_.ok();
  if (request_.sink && !to_sink) {
    response_.body.append(
        piece.substr(0, static_cast<std::size_t>(std::max<std::int64_t>(
                            0, refusal_bytes_max - static_cast<std::int64_t>(response_.body.size())))));
    return true;
  }
  if (request_.response_bytes_max > 0 && body_bytes_ > request_.response_bytes_max) {
    fail(failure(
        ErrorKind::network,
        fmt::format("the response exceeds response_bytes_max, {}", format_size_bytes(request_.response_bytes_max)),
        "this limit of Rille is fixed for the request: check that the URL is the right one"));
    return false;
  }
  if (!to_sink) {
    response_.body.append(piece);
    return true;
  }
  outcome_.delivered = true;
  return check(request_.sink(piece));
}

// Pauses the transfer if its pace says so. True: it is paused.
bool HttpClient::Transfer::pause() {
  if (stopped_ || !request_.pace_ms || !response_.ok()) return false;
  const std::int64_t ms = request_.pace_ms();
  if (ms <= 0) return false;
  paused_.emplace(core_->loop(), ms, [this] {
    paused_.reset();
    NoSigpipe quiet;
    curl().easy_pause(easy_, CURLPAUSE_CONT);  // passes the kept piece, which may pause the transfer again
  });
  return true;
}

Error HttpClient::Transfer::curl_error() {
  std::string what = *text_ ? text_ : curl().easy_strerror(code_);
  bool again = !outcome_.left || is_idempotent(request_);
  double connected = 0;
  curl().easy_getinfo(easy_, CURLINFO_PRETRANSFER_TIME, &connected);
  std::int64_t total_ms = request_.total_timeout_ms, connect_ms = request_.connect_timeout_ms;
  bool in_all = connected > 0 || (total_ms > 0 && total_ms < connect_ms);
  std::string over_time = fmt::format("not {} within {}", connected > 0 ? "done" : "connected",
                                      format_duration_ms(in_all ? total_ms : connect_ms));
  Error e;
  switch (code_) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      // A wrong URL in the server's redirect, or an answer that is not HTTP, is not the caller's mistake.
      if (outcome_.left) e = failure(ErrorKind::network, what, "check that the URL is the right one");
      else e = failure(ErrorKind::invalid, what);
      again = false;
      break;
    case CURLE_OUT_OF_MEMORY:
      // libcurl uses this code also for a line of the response header that is too long for it.
      if (outcome_.left)
        e = failure(ErrorKind::network, "the response header has too long a line, or this machine is out of memory",
                    "check that the URL is the right one");
      else e = failure(ErrorKind::memory, "out of memory", "free memory on this machine, then try again");
      again = false;
      break;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      e = failure(ErrorKind::network, what, "check the name and this machine's network");
      break;
    case CURLE_COULDNT_CONNECT:
      e = failure(ErrorKind::network, what, "check that the server is up and a firewall lets it through");
      break;
    case CURLE_OPERATION_TIMEDOUT: e = failure(ErrorKind::timeout, over_time); break;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_ISSUER_ERROR:
      e = failure(ErrorKind::network, "its TLS certificate is not valid: " + what,
                  "certificates are always verified; for a private authority set SSL_CERT_FILE to its certificate");
      again = false;
      break;
    default: e = failure(ErrorKind::network, what);
  }
  e.code = fmt::format("curl {}", static_cast<int>(code_));
  e.retryable = again;
  const Proxy proxy = core_->options().proxy_from_environment ? proxy_for(request_.url) : Proxy();
  long tunnel_status = 0;
  curl().easy_getinfo(easy_, CURLINFO_HTTP_CONNECTCODE, &tunnel_status);
  if (tunnel_status == 407) {
    e.kind = ErrorKind::auth;
    e.message += fmt::format(", by way of the proxy {} that {} names", proxy.url, proxy.variable);
    e.hint = "check the credentials of the proxy";
    e.retryable = false;
  } else if (connected == 0 && !proxy.url.empty() && (e.kind == ErrorKind::network || e.kind == ErrorKind::timeout) &&
             code_ != CURLE_PEER_FAILED_VERIFICATION) {
    e.message += fmt::format(", by way of the proxy {} that {} names", proxy.url, proxy.variable);
    e.hint = fmt::format("is that proxy correct and running? Unset {}, or add the host to NO_PROXY", proxy.variable);
  }
  return e;
}

void HttpClient::Transfer::log_end() {
  curl_off_t took_us = 0;
  curl().easy_getinfo(easy_, CURLINFO_TOTAL_TIME_T, &took_us);
  std::string end = stopped_            ? std::string(to_string(stopped_->kind))
                    : code_ != CURLE_OK ? fmt::format("curl {}", static_cast<int>(code_))
                                        : std::to_string(response_.status);
  core_->options().log.debug(fmt::format("http: {} {} -> {}, {}, {}", request_.method, redact_url(request_.url), end,
                                         format_size_bytes(body_bytes_), format_duration_ms(took_us / 1000)));
}

}  // namespace rille::net
