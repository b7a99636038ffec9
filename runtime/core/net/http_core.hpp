// Internals of HttpClient: Core is the state that all sends of a client share; Transfer is one attempt of one request.
// Private to runtime/core/net. Loop thread only.
#pragma once

#include "runtime/core/net/curl_multi.hpp"
#include "runtime/core/net/http.hpp"

namespace rille::net {

class HttpClient::Core {
 public:
  Core(Loop& loop, HttpOptions options);
  Core(const Core&) = delete;

  Loop& loop() { return multi.loop(); }
  const HttpOptions& options() const { return options_; }
  std::uint64_t random(std::uint64_t below);
  CurlMulti multi;

 private:
  HttpOptions options_;
  std::uint64_t random_state_;
};

// The facts about an attempt that decide whether to retry.
struct Outcome {
  bool left = false;       // part of the request may have reached the server
  bool delivered = false;  // the sink has received bytes
  bool final = false;      // a callback of the caller returned an error
};

bool is_idempotent(const HttpRequest& request);

class HttpClient::Transfer final : public CurlExchange {
 public:
  // The request must outlive the Transfer.
  Transfer(std::shared_ptr<Core> core, const HttpRequest& request, Outcome& outcome);
  ~Transfer();
  Transfer(const Transfer&) = delete;
  Async<HttpResponse> run(CancelToken token);
  void finished(CURLcode code) override;

 private:
  Result<> set_up();
  Result<> set_headers();
  void set_body();
  void fail(Error why);
  bool check(Result<> of_caller);
  void watch_for_stall();
  Error curl_error();
  Error failure(ErrorKind kind, const std::string& what, std::string hint = {});
  void log_end();
  bool head_line(std::string_view line);
  bool body_piece(std::string_view piece);
  bool pause();
  std::size_t give_body(char* out, std::size_t room);

  std::shared_ptr<Core> core_;
  const HttpRequest& request_;
  Outcome& outcome_;
  CURL* easy_;
  curl_slist* headers_ = nullptr;
  bool added_ = false;
  char text_[CURL_ERROR_SIZE] = {};
  Future<bool> done_;
  CURLcode code_ = CURLE_OK;
  std::optional<Error> stopped_;  // the error with which this side, not the server, ended the transfer
  HttpResponse response_;
  bool head_complete_ = false;
  std::int64_t head_bytes_ = 0, body_bytes_ = 0, moved_before_ = -1;
  std::uint64_t body_sent_ = 0;
  int still_ticks_ = 0;
  std::optional<Timer> stall_, paused_;
};

}  // namespace rille::net
