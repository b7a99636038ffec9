// libcurl's multi interface, run by the runtime's loop; HTTP and mail share it. Loop thread only.
#pragma once

#include <uv.h>

#include <string>

#include "runtime/core/loop/loop.hpp"
#include "runtime/core/loop/no_sigpipe.hpp"
#include "runtime/core/net/curl.hpp"

namespace rille::net {

// Base class of one transfer's owner. finished() is called once; it must not call remove().
class CurlExchange {
 public:
  virtual void finished(CURLcode code) = 0;

 protected:
  ~CurlExchange() = default;
};

class CurlMulti {
 public:
  CurlMulti(Loop& loop, int connections_max,
            int per_host_max);  // call load_curl() first; if libcurl is missing, add() fails
  ~CurlMulti();
  CurlMulti(const CurlMulti&) = delete;
  Loop& loop() { return loop_; }
  // Starts the transfer `easy`. Handle and exchange must live until the transfer ends, or call remove() before.
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

// Sets the options of every transfer: TLS 1.2 or later, verified; no signals. ca_file "": $SSL_CERT_FILE,
// $CURL_CA_BUNDLE, or the distribution's CA file.
void set_safely(CURL* easy, const std::string& ca_file);

}  // namespace rille::net
