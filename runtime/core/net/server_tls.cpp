#include "runtime/core/net/server_tls.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace rille::net {

namespace {

constexpr std::size_t drained_bytes_max = 64 << 10;

Error unusable(const std::string& what, const std::string& file) {
  const char* const text = ERR_reason_error_string(ERR_peek_last_error());
  return make_error(ErrorKind::config, fmt::format("{} {}: {}", what, file, text ? text : "OpenSSL cannot read it"),
                    "both are PEM files; the key has no password and belongs to the first certificate in its file");
}

// A key with a password is refused instead of asking at the terminal.
int no_password(char*, int, int, void*) { return 0; }

}  // namespace

Result<std::unique_ptr<ServerTls>> ServerTls::open(const std::string& certificate_file, const std::string& key_file) {
  ERR_clear_error();
  std::unique_ptr<ServerTls> out(new ServerTls(SSL_CTX_new(TLS_server_method())));
  SSL_CTX* const c = out->context_;
  if (!c || !SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION))
    return make_error(ErrorKind::config, "this machine's OpenSSL allows no TLS 1.2");
  SSL_CTX_set_options(c, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_TICKET);
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_default_passwd_cb(c, no_password);
  if (SSL_CTX_use_certificate_chain_file(c, certificate_file.c_str()) != 1)
    return unusable("the certificate", certificate_file);
  if (SSL_CTX_use_PrivateKey_file(c, key_file.c_str(), SSL_FILETYPE_PEM) != 1) return unusable("the key", key_file);
  return out;
}

ServerTls::~ServerTls() { SSL_CTX_free(context_); }

bool ServerTls::names(const std::string& host) const {
  X509* const certificate = SSL_CTX_get0_certificate(context_);
  return X509_check_ip_asc(certificate, host.c_str(), 0) == 1 ||
         X509_check_host(certificate, host.data(), host.size(), 0, nullptr) == 1;
}

ServerConnection::ServerConnection(std::unique_ptr<Stream> stream, const ServerTls* tls)
    : stream_(std::move(stream)), tls_socket_(stream_->fd()), secure_(tls != nullptr) {
  BIO* const bio = tls ? tls_socket_.new_bio() : nullptr;
  ssl_ = bio ? SSL_new(tls->context_) : nullptr;
  if (!ssl_) return;
  SSL_set_bio(ssl_, bio, bio);
  SSL_set_accept_state(ssl_);
}

ServerConnection::~ServerConnection() { SSL_free(ssl_); }

// Waits until what returned `returned` may be tried again.
Async<> ServerConnection::wait(int returned, CancelToken token) {
  const int what = ssl_ ? SSL_get_error(ssl_, returned) : SSL_ERROR_SSL;
  if (what == SSL_ERROR_WANT_READ) co_return co_await stream_->readable(token);
  if (what == SSL_ERROR_WANT_WRITE) co_return co_await stream_->writable(token);
  co_return make_error(ErrorKind::network, "the connection is closed, or the other side speaks no TLS");
}

Async<std::size_t> ServerConnection::read(char* out, std::size_t size, CancelToken token) {
  if (!secure_) co_return co_await stream_->read(out, size, token);
  for (;;) {
    ERR_clear_error();
    std::size_t read = 0;
    const int returned = ssl_ ? SSL_read_ex(ssl_, out, size, &read) : 0;
    if (returned > 0) co_return read;
    if (ssl_ && SSL_get_error(ssl_, returned) == SSL_ERROR_ZERO_RETURN) co_return std::size_t(0);
    RILLE_CO_CHECK(co_await wait(returned, token));
  }
}

Async<> ServerConnection::write(std::string_view bytes, CancelToken token) {
  if (!secure_) co_return co_await stream_->write(bytes, token);
  while (!bytes.empty()) {
    ERR_clear_error();
    std::size_t written = 0;
    const int returned = ssl_ ? SSL_write_ex(ssl_, bytes.data(), bytes.size(), &written) : 0;
    if (returned <= 0) { RILLE_CO_CHECK(co_await wait(returned, token)); }
    bytes.remove_prefix(written);
  }
  co_return success();
}

Async<> ServerConnection::finish(CancelToken token) {
  if (ssl_) SSL_shutdown(ssl_);
  stream_->shutdown_write();
  char rest[4096];
  for (std::size_t drained = 0; drained < drained_bytes_max;) {
    RILLE_CO_TRY(const std::size_t n, co_await stream_->read(rest, sizeof rest, token));
    if (n == 0) break;
    drained += n;
  }
  co_return success();
}

}  // namespace rille::net
