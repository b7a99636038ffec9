// libcurl's multi interface on the runtime's loop: what HTTP and mail share. Loop thread only.
#pragma once

#include <uv.h>

#include <string>

#include "runtime/core/loop/loop.hpp"
#include "runtime/core/loop/no_sigpipe.hpp"
#include "runtime/core/net/curl.hpp"

namespace rille::net {

// One transfer's owner. Told once; it removes its handle later, not from inside the call.
class CurlExchange {
 public:
  virtual void finished(CURLcode code) = 0;

 protected:
  ~CurlExchange() = default;
};

class CurlMulti {
 public:
  CurlMulti(Loop& loop, int connections_max, int per_host_max);  // without libcurl nothing can be added: load_curl()
  ~CurlMulti();
  CurlMulti(const CurlMulti&) = delete;
  Loop& loop() { return loop_; }
  // Begins. The exchange and its handle outlive the transfer, or remove it.
  CURLMcode add(CURL* easy, CurlExchange& exchange);
  void remove(CURL* easy);

 private:
  struct Socket;
  static int on_socket(CURL*, curl_socket_t fd, int what, void* self, void* socket);
  static int on_timer(CURLM*, long ms, void* self);
  void act(curl_socket_t fd, int flags);
  void finish_all_done();

  Loop& loop_;
  CURLM* multi_ = nullptr;  // null: libcurl is missing
  uv_timer_t* timer_;
};

// What every transfer gets: verified TLS of 1.2 at least, no signals. ca_file "": $SSL_CERT_FILE, $CURL_CA_BUNDLE, or
// where distributions keep theirs.
void set_safely(CURL* easy, const std::string& ca_file);

}  // namespace rille::net
