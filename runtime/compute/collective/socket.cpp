#include "runtime/compute/collective/socket.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>

namespace rille::collective {

Stop::Stop() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Stop::now(Error why) {
  {
    const std::lock_guard lock(mutex_);
    if (asked_) return;
    why_ = std::move(why);
    asked_.store(true, std::memory_order_release);
  }
  ::eventfd_write(event_.get(), 1);
}

Error Stop::why() const {
  const std::lock_guard lock(mutex_);
  return why_;
}

int Limit::left_ms() const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now()).count();
  return int(std::clamp<std::int64_t>(left, 0, 1 << 30));
}

Result<> Limit::wait(int fd, short events) const {
  for (;;) {
    pollfd set[2] = {{stop->fd(), POLLIN, 0}, {fd, events, 0}};
    const int n = ::poll(set, 2, left_ms());
    if (n < 0 && errno != EINTR) return errno_error("poll", "sockets between ranks", errno);
    if (stop->asked()) return stop->why();
    if (n > 0 && set[1].revents) return success();
    if (left_ms() == 0) return make_error(ErrorKind::timeout, "");
  }
}

Result<> Limit::pause(int ms) const {
  Limit shorter = *this;
  shorter.end = std::min(end, std::chrono::steady_clock::now() + std::chrono::milliseconds(ms));
  const auto waited = shorter.wait(-1, 0);  // poll ignores a negative descriptor
  if (!waited && waited.error().kind != ErrorKind::timeout) return waited;
  if (stop->asked()) return stop->why();
  return success();
}

Result<Address> parse_address(std::string_view text) {
  const auto colon = text.rfind(':');
  Address a;
  if (colon != std::string_view::npos) {
    auto host = text.substr(0, colon);
    const auto port = text.substr(colon + 1);
    const bool brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (brackets) host = host.substr(1, host.size() - 2);
    const auto [end, failed] = std::from_chars(port.data(), port.data() + port.size(), a.port);
    if (failed == std::errc() && end == port.data() + port.size() && a.port > 0 && a.port < 65536 && !host.empty() &&
        (brackets || host.find(':') == std::string_view::npos)) {
      a.host = host;
      return a;
    }
  }
  return make_error(ErrorKind::invalid, fmt::format("'{}' is not an address of rank 0", text),
                    "host and port: \"10.0.0.1:29500\", \"node1:29500\", \"[::1]:29500\"");
}

std::string to_string(const Address& a) {
  return fmt::format("{}{}{}:{}", a.host.find(':') == std::string::npos ? "" : "[", a.host,
                     a.host.find(':') == std::string::npos ? "" : "]", a.port);
}

namespace {

using Infos = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Result<Infos> resolve(const Address& a, bool to_listen) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (to_listen ? AI_PASSIVE : 0);
  addrinfo* found = nullptr;
  const int failed = ::getaddrinfo(a.host.c_str(), std::to_string(a.port).c_str(), &hints, &found);
  if (failed) {
    return make_error(ErrorKind::network, fmt::format("{}: {}", to_string(a), ::gai_strerror(failed)),
                      "the address names the machine of rank 0 as every rank can reach it");
  }
  return Infos(found, &::freeaddrinfo);
}

Fd new_socket(int family) { return Fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

void no_delay(int fd) {
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Address address_of(const sockaddr_storage& s) {
  char text[INET6_ADDRSTRLEN] = "";
  if (s.ss_family == AF_INET6) {
    const auto& in = reinterpret_cast<const sockaddr_in6&>(s);
    ::inet_ntop(AF_INET6, &in.sin6_addr, text, sizeof text);
    return {text, ntohs(in.sin6_port)};
  }
  const auto& in = reinterpret_cast<const sockaddr_in&>(s);
  ::inet_ntop(AF_INET, &in.sin_addr, text, sizeof text);
  return {text, ntohs(in.sin_port)};
}

// The most time for one of several addresses, so that an address that never answers leaves time for the next.
constexpr std::chrono::seconds one_address_max{2};

// 0: connected; else an errno value.
Result<int> try_connect(const addrinfo& to, bool others, Fd& fd, const Limit& limit) {
  fd = new_socket(to.ai_family);
  if (!fd.valid()) return errno;
  if (::connect(fd.get(), to.ai_addr, to.ai_addrlen) == 0) return 0;
  if (errno != EINPROGRESS) return errno;
  Limit one = limit;
  if (others) one.end = std::min(one.end, std::chrono::steady_clock::now() + one_address_max);
  const Result<> waited = one.wait(fd.get(), POLLOUT);
  if (!waited && !limit.stop->asked() && limit.left_ms() > 0) return ETIMEDOUT;
  RILLE_CHECK(waited);
  int failed = 0;
  socklen_t size = sizeof failed;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &failed, &size);
  return failed;
}

}  // namespace

Result<Fd> listen_at(const Address& address) {
  RILLE_TRY(const auto infos, resolve(address, true));
  int failed = 0;
  for (const addrinfo* i = infos.get(); i; i = i->ai_next) {
    Fd fd = new_socket(i->ai_family);
    const int on = 1;
    if (fd.valid() && ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        ::bind(fd.get(), i->ai_addr, i->ai_addrlen) == 0 && ::listen(fd.get(), 1024) == 0)
      return fd;
    failed = errno;
  }
  Error e = errno_error("listen", to_string(address), failed);
  e.kind = ErrorKind::network;
  return std::move(e).with_hint(failed == EADDRINUSE ? "use another port; or an earlier rank 0 is still running"
                                                     : "rank 0 listens there: it must be an address of its machine");
}

Result<Fd> connect_to(const Address& address, const Limit& limit) { return connect_to_one_of({&address, 1}, limit); }

Result<Fd> connect_to_one_of(std::span<const Address> addresses, const Limit& limit) {
  std::vector<Infos> resolved;
  std::vector<const addrinfo*> all;
  for (const Address& a : addresses) {
    RILLE_TRY(Infos infos, resolve(a, false));
    for (const addrinfo* i = infos.get(); i; i = i->ai_next) all.push_back(i);
    resolved.push_back(std::move(infos));
  }
  for (int pause_ms = 5;; pause_ms = std::min(2 * pause_ms, 200)) {
    int failed = 0;
    for (const addrinfo* i : all) {
      Fd fd;
      RILLE_TRY(failed, try_connect(*i, all.size() > 1, fd, limit));
      if (failed == 0) {
        no_delay(fd.get());
        return fd;
      }
    }
    if (limit.left_ms() == 0) {
      Error e = errno_error("connect", to_string(addresses[0]), failed);
      e.kind = ErrorKind::timeout;
      return e;
    }
    RILLE_CHECK(limit.pause(pause_ms));
  }
}

Fd accept_from(int listener) {
  Fd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (fd.valid()) no_delay(fd.get());
  return fd;
}

Address local_address(int fd) {
  sockaddr_storage s{};
  socklen_t size = sizeof s;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&s), &size);
  return address_of(s);
}

Address remote_address(int fd) {
  sockaddr_storage s{};
  socklen_t size = sizeof s;
  ::getpeername(fd, reinterpret_cast<sockaddr*>(&s), &size);
  return address_of(s);
}

}  // namespace rille::collective
