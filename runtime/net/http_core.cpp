#include "runtime/net/http_core.hpp"

#include <cerrno>
#include <random>

#include "runtime/base/id.hpp"

namespace rille::net {

struct HttpClient::Core::Socket {
  uv_poll_t poll;
  Core* core;
  curl_socket_t fd;
};

HttpClient::Core::Core(Loop& loop, HttpOptions options)
    : loop_(loop), options_(std::move(options)), random_state_(options_.jitter_seed) {
  if (!random_state_) random_state_ = std::stoull(random_hex(7), nullptr, 16) + 1;
  timer_ = new uv_timer_t;
  uv_timer_init(loop_.uv(), timer_);
  timer_->data = this;
  if (!load_curl()) return;  // every send says so
  multi_ = curl().multi_init();
  curl().multi_setopt(multi_, CURLMOPT_SOCKETFUNCTION, &Core::on_socket);
  curl().multi_setopt(multi_, CURLMOPT_SOCKETDATA, this);
  curl().multi_setopt(multi_, CURLMOPT_TIMERFUNCTION, &Core::on_timer);
  curl().multi_setopt(multi_, CURLMOPT_TIMERDATA, this);
  curl().multi_setopt(multi_, CURLMOPT_MAX_TOTAL_CONNECTIONS, static_cast<long>(options_.connections_max));
  curl().multi_setopt(multi_, CURLMOPT_MAX_HOST_CONNECTIONS,
                    static_cast<long>(options_.connections_per_host_max));
}

HttpClient::Core::~Core() {
  if (multi_) {
    NoSigpipe quiet;
    curl().multi_cleanup(multi_);  // closes idle connections, which calls on_socket
  }
  uv_timer_stop(timer_);
  uv_close(reinterpret_cast<uv_handle_t*>(timer_),
           [](uv_handle_t* h) { delete reinterpret_cast<uv_timer_t*>(h); });
}

std::uint64_t HttpClient::Core::random(std::uint64_t below) {
  std::minstd_rand engine(static_cast<std::minstd_rand::result_type>(random_state_ ^ (random_state_ >> 32)));
  engine.discard(2);
  random_state_ = random_state_ * 6364136223846793005u + engine();
  return below ? (random_state_ >> 16) % below : 0;
}

CURLMcode HttpClient::Core::add(CURL* easy) { return curl().multi_add_handle(multi_, easy); }

void HttpClient::Core::remove(CURL* easy) {
  NoSigpipe quiet;
  curl().multi_remove_handle(multi_, easy);
}

int HttpClient::Core::on_socket(CURL*, curl_socket_t fd, int what, void* self, void* known) {
  auto* core = static_cast<Core*>(self);
  auto* socket = static_cast<Socket*>(known);
  if (what == CURL_POLL_REMOVE) {
    if (!socket) return 0;
    uv_poll_stop(&socket->poll);  // at once: libcurl closes the descriptor next
    uv_close(reinterpret_cast<uv_handle_t*>(&socket->poll),
             [](uv_handle_t* h) { delete static_cast<Socket*>(h->data); });
    curl().multi_assign(core->multi_, fd, nullptr);
    return 0;
  }
  if (!socket) {
    socket = new Socket{{}, core, fd};
    if (uv_poll_init_socket(core->loop_.uv(), &socket->poll, fd) != 0) {
      delete socket;
      return -1;
    }
    socket->poll.data = socket;
    curl().multi_assign(core->multi_, fd, socket);
  }
  int events = ((what & CURL_POLL_IN) ? UV_READABLE : 0) | ((what & CURL_POLL_OUT) ? UV_WRITABLE : 0);
  uv_poll_start(&socket->poll, events, [](uv_poll_t* poll, int status, int ready) {
    auto* s = static_cast<Socket*>(poll->data);
    int flags = status < 0 ? CURL_CSELECT_ERR
                           : ((ready & UV_READABLE) ? CURL_CSELECT_IN : 0) |
                                 ((ready & UV_WRITABLE) ? CURL_CSELECT_OUT : 0);
    s->core->act(s->fd, flags);
  });
  return 0;
}

int HttpClient::Core::on_timer(CURLM*, long ms, void* self) {
  auto* core = static_cast<Core*>(self);
  if (ms < 0) {
    uv_timer_stop(core->timer_);
    return 0;
  }
  uv_update_time(core->loop_.uv());
  uv_timer_start(
      core->timer_, [](uv_timer_t* t) { static_cast<Core*>(t->data)->act(CURL_SOCKET_TIMEOUT, 0); },
      static_cast<std::uint64_t>(ms), 0);
  return 0;
}

void HttpClient::Core::act(curl_socket_t fd, int flags) {
  NoSigpipe quiet;
  int running = 0;
  curl().multi_socket_action(multi_, fd, flags, &running);
  finish_all_done();
}

void HttpClient::Core::finish_all_done() {
  int left = 0;
  while (CURLMsg* message = curl().multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    Transfer* transfer = nullptr;
    curl().easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
    transfer->finished(message->data.result);  // only queues: the handle is removed by its owner later
  }
}

}  // namespace rille::net
