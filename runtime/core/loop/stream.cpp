#include "runtime/core/loop/stream.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/core/loop/no_sigpipe.hpp"

namespace rille {

namespace {

ssize_t write_quietly(int fd, const char* data, std::size_t size) {
  NoSigpipe guard;
  return ::write(fd, data, size);
}

bool would_block(int e) { return e == EAGAIN || e == EWOULDBLOCK; }

Result<sockaddr_un> unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return make_error(ErrorKind::config,
                      "socket path '" + path + "' is longer than the 107 bytes that this system allows",
                      "set RILLE_HOME to a shorter path");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

}  // namespace

Result<std::unique_ptr<Stream>> Stream::adopt(Loop& loop, int fd) {
  int flags = fcntl(fd, F_GETFL);
  if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0)
    return errno_error("open stream", std::to_string(fd), errno);
  struct stat st {};
  fstat(fd, &st);
  std::unique_ptr<Stream> stream(new Stream(loop, fd, S_ISSOCK(st.st_mode)));
  auto* poll = new uv_poll_t;
  if (int rc = uv_poll_init(loop.uv(), poll, fd); rc != 0) {
    delete poll;
    return make_error(ErrorKind::io, std::string("cannot watch a stream: ") + uv_strerror(rc));
  }
  poll->data = stream.get();
  stream->poll_ = poll;
  return stream;
}

Async<std::unique_ptr<Stream>> Stream::connect_unix(Loop& loop, std::string path) {
  RILLE_CO_TRY(sockaddr_un address, unix_address(path));
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) co_return errno_error("open socket", path, errno);
  // connect() to a Unix socket never blocks: it succeeds, fails, or returns EAGAIN when the backlog is full.
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) < 0) {
    int e = errno;
    close(fd);
    co_return errno_error("connect to", path, e);
  }
  co_return adopt(loop, fd);
}

Stream::~Stream() {
  if (poll_) {
    poll_->data = nullptr;
    uv_poll_stop(poll_);
    uv_close(reinterpret_cast<uv_handle_t*>(poll_), [](uv_handle_t* h) { delete reinterpret_cast<uv_poll_t*>(h); });
  }
  // It is safe to close fd_ now: uv_close has already removed it from epoll (uv__platform_invalidate_fd).
  close(fd_);
}

void Stream::update_poll() {
  int events = (readable_ ? UV_READABLE | UV_DISCONNECT : 0) | (writable_ ? UV_WRITABLE : 0);
  if (!events) {
    uv_poll_stop(poll_);
    return;
  }
  uv_poll_start(poll_, events, [](uv_poll_t* p, int status, int happened) {
    if (p->data) static_cast<Stream*>(p->data)->ready(status, happened);
  });
}

void Stream::ready(int status, int events) {
  // On an error wake the waiters too: their next read or write reports it.
  if (readable_ && (status < 0 || (events & (UV_READABLE | UV_DISCONNECT))))
    std::exchange(readable_, {})->set(success());
  if (writable_ && (status < 0 || (events & UV_WRITABLE))) std::exchange(writable_, {})->set(success());
  update_poll();
}

Async<> Stream::wait(int event, CancelToken token) {
  Future<Result<>> done(loop_);
  auto& slot = event == UV_READABLE ? readable_ : writable_;
  slot.emplace(done);
  update_poll();
  auto registration = token.on_cancel([this, &slot, done](const Error& why) {
    slot.reset();
    update_poll();
    done.set(why);
  });
  co_return co_await done;
}

Async<std::size_t> Stream::read(char* out, std::size_t size, CancelToken token) {
  while (true) {
    ssize_t n = ::read(fd_, out, size);
    if (n >= 0) co_return static_cast<std::size_t>(n);
    if (errno == EINTR) continue;
    if (errno == ECONNRESET) co_return std::size_t{0};
    if (!would_block(errno)) co_return errno_error("read", "stream", errno);
    RILLE_CO_CHECK(co_await wait(UV_READABLE, token));
  }
}

Async<> Stream::write(std::string_view bytes, CancelToken token) {
  while (!bytes.empty()) {
    ssize_t n =
        socket_ ? send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) : write_quietly(fd_, bytes.data(), bytes.size());
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (would_block(errno)) {
      RILLE_CO_CHECK(co_await wait(UV_WRITABLE, token));
    } else if (errno != EINTR) {
      co_return errno_error("write", "stream", errno);
    }
  }
  co_return success();
}

void Stream::shutdown_write() {
  if (socket_) shutdown(fd_, SHUT_WR);
}

Result<std::unique_ptr<Listener>> Listener::listen_unix(Loop& loop, const std::string& path) {
  RILLE_TRY(sockaddr_un address, unix_address(path));
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return errno_error("open socket", path, errno);
  unlink(path.c_str());
  mode_t before = umask(0177);
  int rc = ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address);
  int e = errno;
  umask(before);
  if (rc == 0 && (rc = ::listen(fd, 64)) < 0) e = errno;
  if (rc < 0) {
    close(fd);
    return errno_error("listen on", path, e);
  }
  RILLE_TRY(auto stream, Stream::adopt(loop, fd));
  return std::unique_ptr<Listener>(new Listener(std::move(stream), path));
}

Listener::~Listener() {
  if (!path_.empty()) unlink(path_.c_str());
}

Async<std::unique_ptr<Stream>> Listener::accept(CancelToken token) {
  while (true) {
    int fd = accept4(stream_->fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) co_return Stream::adopt(stream_->loop_, fd);
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (!would_block(errno)) co_return errno_error("accept on", path_ + address_, errno);
    RILLE_CO_CHECK(co_await stream_->wait(UV_READABLE, token));
  }
}

}  // namespace rille
