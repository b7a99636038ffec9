#include <sys/socket.h>

#include <cerrno>

#include "runtime/compute/collective/link.hpp"

namespace rille::collective {

namespace {

Error gone() { return make_error(ErrorKind::network, "its connection to this rank is closed"); }

class TcpLink final : public Link {
 public:
  explicit TcpLink(Fd data) : data_(std::move(data)) {}

  Result<std::size_t> write_some(const std::byte* from, std::size_t bytes) override {
    const auto n = ::send(data_.get(), from, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) return std::size_t(n);
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return std::size_t(0);
    return gone();
  }

  Result<std::size_t> read_some(std::byte* to, std::size_t bytes) override {
    const auto n = ::recv(data_.get(), to, bytes, MSG_DONTWAIT);
    if (n > 0) return std::size_t(n);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return std::size_t(0);
    return gone();
  }

  int socket() const override { return data_.get(); }

 private:
  Fd data_;
};

}  // namespace

std::unique_ptr<Link> tcp_link(Fd data) { return std::make_unique<TcpLink>(std::move(data)); }

}  // namespace rille::collective
