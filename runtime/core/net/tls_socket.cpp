#include "runtime/core/net/tls_socket.hpp"

#include <openssl/bio.h>
#include <sys/socket.h>

#include <cerrno>

namespace rille::net {

namespace {

// A larger buffer is not faster: this is one segment of the loopback device, and fits a core's cache.
constexpr std::size_t gather_bytes = 64u << 10;
constexpr std::size_t record_bytes_max = (16u << 10) + 256;  // RFC 8446, 5.2

}  // namespace

struct TlsBio {
  static TlsSocket* of(BIO* bio) { return static_cast<TlsSocket*>(BIO_get_data(bio)); }

  static int read(BIO* bio, char* to, int bytes) {
    BIO_clear_retry_flags(bio);
    const auto n = ::recv(of(bio)->socket_, to, std::size_t(bytes), 0);
    if (n < 0 && BIO_sock_should_retry(int(n))) BIO_set_retry_read(bio);
    if (n == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    return int(n);
  }
  static int write(BIO* bio, const char* from, int bytes) {
    BIO_clear_retry_flags(bio);
    const long n = of(bio)->write(from, std::size_t(bytes));
    if (n <= 0 && BIO_sock_should_retry(int(n))) BIO_set_retry_write(bio);
    return int(n);
  }
  static long control(BIO* bio, int what, long, void*) {
    if (what == BIO_CTRL_EOF) return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0;
    return what == BIO_CTRL_FLUSH;
  }
  static BIO_METHOD* method() {
    BIO_METHOD* const m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "rank");
    BIO_meth_set_read(m, read);
    BIO_meth_set_write(m, write);
    BIO_meth_set_ctrl(m, control);
    return m;
  }
};

BIO* TlsSocket::new_bio() {
  static BIO_METHOD* const method = TlsBio::method();
  BIO* const bio = BIO_new(method);
  if (!bio) return nullptr;
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  return bio;
}

void TlsSocket::gather() {
  gathers_ = true;
  out_.reserve(gather_bytes + record_bytes_max);
}

bool TlsSocket::full() const { return sent_ > 0 || out_.size() >= gather_bytes; }

Result<std::size_t> TlsSocket::flush() {
  const std::size_t before = sent_;
  while (sent_ < out_.size()) {
    const auto n = ::send(socket_, out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return sent_ - before;
    if (n < 0) return make_error(ErrorKind::network, "the connection is closed");
    sent_ += std::size_t(n);
  }
  const std::size_t sent = sent_ - before;
  out_.clear();
  sent_ = 0;
  return sent;
}

// OpenSSL's own socket BIO would raise SIGPIPE.
long TlsSocket::write(const char* from, std::size_t bytes) {
  if (!gathers()) return ::send(socket_, from, bytes, MSG_NOSIGNAL);
  out_.append(from, bytes);
  return long(bytes);
}

}  // namespace rille::net
