// TCP for Stream and Listener. Addresses are numeric, since looking up a name would block.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "runtime/core/loop/stream.hpp"

namespace rille {

namespace {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;
  sockaddr* raw() { return reinterpret_cast<sockaddr*>(&storage); }
};

std::optional<SocketAddress> address_of(const std::string& host, std::uint16_t port) {
  SocketAddress out;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&out.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&out.storage);
  if (inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET, v4->sin_port = htons(port), out.bytes = sizeof *v4;
    return out;
  }
  if (inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) != 1) return {};
  v6->sin6_family = AF_INET6, v6->sin6_port = htons(port), out.bytes = sizeof *v6;
  return out;
}

// Port 0 is for a listener that takes a free one.
std::optional<SocketAddress> parse_tcp(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return {};
  std::string host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  else if (host.find(':') != std::string::npos) return {};
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [at, failed] = std::from_chars(text.data() + colon + 1, end, port);
  if (failed != std::errc() || at != end) return {};
  return address_of(host, port);
}

std::uint16_t port_of(const SocketAddress& address) {
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address.storage);
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address.storage);
  return ntohs(address.storage.ss_family == AF_INET ? v4->sin_port : v6->sin6_port);
}

std::string text_of(const SocketAddress& address) {
  char host[INET6_ADDRSTRLEN] = "";
  const bool v4 = address.storage.ss_family == AF_INET;
  if (v4) inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_addr, host, sizeof host);
  else inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr, host, sizeof host);
  return (v4 ? std::string(host) : "[" + std::string(host) + "]") + ":" + std::to_string(port_of(address));
}

int tcp_socket(const SocketAddress& address) {
  const int fd = ::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  if (fd >= 0) ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

Error cannot_connect(const std::string& address, int errno_value) {
  Error e = errno_error("connect to", address, errno_value);
  e.kind = ErrorKind::network;
  return e;
}

}  // namespace

Async<std::unique_ptr<Stream>> Stream::connect_tcp(Loop& loop, std::string address, CancelToken token) {
  std::optional<SocketAddress> to = parse_tcp(address);
  if (!to || port_of(*to) == 0)
    co_return make_error(ErrorKind::invalid, "'" + address + "' is not a numeric address with a port",
                         "such as 10.0.0.1:4711 or [fd00::1]:4711");
  const int fd = tcp_socket(*to);
  if (fd < 0) co_return errno_error("open socket", address, errno);
  RILLE_CO_TRY(std::unique_ptr<Stream> stream, adopt(loop, fd));
  if (::connect(fd, to->raw(), to->bytes) == 0) co_return std::move(stream);
  if (errno != EINPROGRESS) co_return cannot_connect(address, errno);
  RILLE_CO_CHECK(co_await stream->writable(token));
  int failed = 0;
  socklen_t bytes = sizeof failed;
  if (::getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &bytes) < 0) failed = errno;
  if (failed) co_return cannot_connect(address, failed);
  co_return std::move(stream);
}

Result<std::unique_ptr<Listener>> Listener::listen_tcp(Loop& loop, const std::string& host) {
  std::optional<SocketAddress> at = address_of(host, 0);
  if (!at) at = parse_tcp(host);
  if (!at)
    return make_error(ErrorKind::invalid, "'" + host + "' is not a numeric address",
                      "such as 10.0.0.1, or with a port 10.0.0.1:4711 or [fd00::1]:4711");
  const int fd = tcp_socket(*at);
  if (fd < 0) return errno_error("open socket", host, errno);
  RILLE_TRY(auto stream, Stream::adopt(loop, fd));
  const int on = 1;  // the port is free again while connections of this listener fade
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd, at->raw(), at->bytes) < 0 || ::listen(fd, 64) < 0 || ::getsockname(fd, at->raw(), &at->bytes) < 0)
    return errno_error("listen on", host, errno);
  std::unique_ptr<Listener> out(new Listener(std::move(stream), ""));
  out->address_ = text_of(*at);
  return out;
}

}  // namespace rille
