// Stream: a byte stream over a socket, a pipe or a terminal, without SIGPIPE. At most one task may read and one may
// write at a time. After a write error every later write fails. The destructor closes the descriptor.
// Listener: accepts streams at a Unix-domain socket, or at a TCP address. Loop thread only.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/core/loop/loop.hpp"

namespace rille {

class Stream {
 public:
  // Takes ownership of fd and makes it non-blocking.
  static Result<std::unique_ptr<Stream>> adopt(Loop& loop, int fd);
  static Async<std::unique_ptr<Stream>> connect_unix(Loop& loop, std::string path);
  // To a numeric address: "10.0.0.1:4711", "[fd00::1]:4711". Error `invalid` for another text, else `network`.
  static Async<std::unique_ptr<Stream>> connect_tcp(Loop& loop, std::string address, CancelToken token = {});
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Reads at most `size` bytes; returns 0 at the end of the stream. If `token` is cancelled, fails with its reason.
  Async<std::size_t> read(char* out, std::size_t size, CancelToken token = {});
  // Writes all bytes or fails. The caller keeps `bytes` alive until the task ends.
  Async<> write(std::string_view bytes, CancelToken token = {});
  void shutdown_write();  // after this the peer reads the end of the stream
  // For those that read and write the descriptor themselves: wait until it is ready.
  Async<> readable(CancelToken token = {}) { return wait(UV_READABLE, std::move(token)); }
  Async<> writable(CancelToken token = {}) { return wait(UV_WRITABLE, std::move(token)); }
  int fd() const { return fd_; }

 private:
  friend class Listener;
  Stream(Loop& loop, int fd, bool socket) : loop_(loop), fd_(fd), socket_(socket) {}
  Async<> wait(int event, CancelToken token);
  void update_poll();
  void ready(int status, int events);

  Loop& loop_;
  int fd_;
  bool socket_;
  uv_poll_t* poll_ = nullptr;
  std::optional<Future<Result<>>> readable_, writable_;
};

class Listener {
 public:
  // Listens at `path` with mode 0600. Replaces a socket file left there by a process that has ended.
  static Result<std::unique_ptr<Listener>> listen_unix(Loop& loop, const std::string& path);
  // At a numeric address of this machine: at a free port, or at its own ("10.0.0.1:4711"; 0: a free one).
  static Result<std::unique_ptr<Listener>> listen_tcp(Loop& loop, const std::string& host);
  const std::string& address() const { return address_; }  // "10.0.0.1:4711"; "" of a Unix-domain socket
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  Async<std::unique_ptr<Stream>> accept(CancelToken token = {});

 private:
  Listener(std::unique_ptr<Stream> stream, std::string path) : stream_(std::move(stream)), path_(std::move(path)) {}
  std::unique_ptr<Stream> stream_;
  std::string path_, address_;
};

}  // namespace rille
