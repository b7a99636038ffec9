#include "runtime/core/net/curl_multi.hpp"

#include <unistd.h>

#include <cstdlib>

#include "runtime/core/base/places.hpp"

namespace rille::net {

struct CurlMulti::Socket {
  uv_poll_t poll;
  CurlMulti* multi;
  curl_socket_t fd;
};

CurlMulti::CurlMulti(Loop& loop, int connections_max, int per_host_max) : loop_(loop) {
  timer_ = new uv_timer_t;
  uv_timer_init(loop_.uv(), timer_);
  timer_->data = this;
  if (!load_curl()) return;
  multi_ = curl().multi_init();
  curl().multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &CurlMulti::on_socket);
  curl().multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl().multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &CurlMulti::on_timer);
  curl().multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  curl().multi_setopt(multi_, CURLMOPT_MAX_TOTAL_CONNECTIONS, static_cast<long>(connections_max));
  curl().multi_setopt(multi_, CURLMOPT_MAX_HOST_CONNECTIONS, static_cast<long>(per_host_max));
}

CurlMulti::~CurlMulti() {
  if (multi_) {
    NoSigpipe quiet;
    curl().multi_cleanup(multi_);  // also closes idle connections, which calls on_socket
  }
  uv_timer_stop(timer_);
  uv_close(reinterpret_cast<uv_handle_t*>(timer_), [](uv_handle_t* h) { delete reinterpret_cast<uv_timer_t*>(h); });
}

CURLMcode CurlMulti::add(CURL* easy, CurlExchange& exchange) {
  curl().easy_setopt(easy, CURLOPT_PRIVATE, static_cast<void*>(&exchange));
  return curl().multi_add_handle(multi_, easy);
}

void CurlMulti::remove(CURL* easy) {
  NoSigpipe quiet;
  curl().multi_remove_handle(multi_, easy);
}

int CurlMulti::on_socket(CURL*, curl_socket_t fd, int what, void* self, void* known) {
  auto* multi = static_cast<CurlMulti*>(self);
  auto* socket = static_cast<Socket*>(known);
  if (what == CURL_POLL_REMOVE) {
    if (!socket) return 0;
    uv_poll_stop(&socket->poll);  // stop polling now, because libcurl closes the descriptor next
    uv_close(reinterpret_cast<uv_handle_t*>(&socket->poll),
             [](uv_handle_t* h) { delete static_cast<Socket*>(h->data); });
    curl().multi_assign(multi->multi_, fd, nullptr);
    return 0;
  }
  if (!socket) {
    socket = new Socket{{}, multi, fd};
    if (uv_poll_init_socket(multi->loop_.uv(), &socket->poll, fd) != 0) {
      delete socket;
      return -1;
    }
    socket->poll.data = socket;
    curl().multi_assign(multi->multi_, fd, socket);
  }
  int events = ((what & CURL_POLL_IN) ? UV_READABLE : 0) | ((what & CURL_POLL_OUT) ? UV_WRITABLE : 0);
  uv_poll_start(&socket->poll, events, [](uv_poll_t* poll, int status, int ready) {
    auto* s = static_cast<Socket*>(poll->data);
    int flags = status < 0
                    ? CURL_CSELECT_ERR
                    : ((ready & UV_READABLE) ? CURL_CSELECT_IN : 0) | ((ready & UV_WRITABLE) ? CURL_CSELECT_OUT : 0);
    s->multi->act(s->fd, flags);
  });
  return 0;
}

int CurlMulti::on_timer(CURLM*, long ms, void* self) {
  auto* multi = static_cast<CurlMulti*>(self);
  if (ms < 0) {
    uv_timer_stop(multi->timer_);
    return 0;
  }
  uv_update_time(multi->loop_.uv());
  uv_timer_start(
      multi->timer_, [](uv_timer_t* t) { static_cast<CurlMulti*>(t->data)->act(CURL_SOCKET_TIMEOUT, 0); },
      static_cast<std::uint64_t>(ms), 0);
  return 0;
}

void CurlMulti::act(curl_socket_t fd, int flags) {
  NoSigpipe quiet;
  int running = 0;
  curl().multi_socket_action(multi_, fd, flags, &running);
  finish_all_done();
}

void CurlMulti::finish_all_done() {
  int left = 0;
  while (CURLMsg* message = curl().multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    void* exchange = nullptr;
    curl().easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &exchange);
    static_cast<CurlExchange*>(exchange)->finished(message->data.result);
  }
}

namespace {

// The file of CA certificates. libcurl's compiled-in path fits only the system that built it; a bundle runs on others.
std::string find_ca_file() {
  for (const char* variable : {"SSL_CERT_FILE", "CURL_CA_BUNDLE"})
    if (const char* path = std::getenv(variable); path && *path) return path;
  for (const char* path : {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
                           "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"})
    if (::access(path, R_OK) == 0) return path;
  std::string folder = bundle_folder();  // an instance may have no certificates installed, so the bundle contains some
  std::string own = folder + "/share/rille/ca-certificates.crt";
  return !folder.empty() && ::access(own.c_str(), R_OK) == 0 ? own : "";
}

}  // namespace

void set_safely(CURL* easy, const std::string& ca_file) {
  auto set = [easy](CURLoption option, auto value) { curl().easy_setopt(easy, option, value); };
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  std::string ca = ca_file.empty() ? find_ca_file() : ca_file;
  if (!ca.empty()) set(CURLOPT_CAINFO, ca.c_str());
}

}  // namespace rille::net
