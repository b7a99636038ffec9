#include "runtime/core/net/psk_tls.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>

namespace rille::net {

namespace {

constexpr unsigned char psk_cipher_id[] = {0x13, 0x01};  // TLS_AES_128_GCM_SHA256
constexpr std::uint64_t records_max = std::uint64_t{1} << 24;

}  // namespace

struct PskCallbacks {
  // The key as OpenSSL takes it: a session to resume. OpenSSL owns the result.
  static SSL_SESSION* session(SSL* ssl, const std::string& key) {
    SSL_SESSION* const session = SSL_SESSION_new();
    if (session &&
        SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(key.data()), key.size()) &&
        SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, psk_cipher_id)) &&
        SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
      return session;
    SSL_SESSION_free(session);
    return nullptr;
  }

  static int offer(SSL* ssl, const EVP_MD*, const unsigned char** id, std::size_t* id_bytes, SSL_SESSION** key) {
    const auto* self = static_cast<const PskTls*>(SSL_get_app_data(ssl));
    *id = reinterpret_cast<const unsigned char*>(self->identity_.data());
    *id_bytes = self->identity_.size();
    *key = session(ssl, self->key_);
    return *key != nullptr;
  }

  // No key for an unknown identity: the handshake then fails, since there is no certificate.
  static int find(SSL* ssl, const unsigned char* id, std::size_t id_bytes, SSL_SESSION** key) {
    auto* self = static_cast<PskTls*>(SSL_get_app_data(ssl));
    const std::string_view wanted(reinterpret_cast<const char*>(id), id_bytes);
    const std::string found = self->find_ ? self->find_(wanted) : std::string();
    *key = nullptr;
    if (found.empty()) return 1;
    self->identity_ = wanted;
    *key = session(ssl, found);
    return *key != nullptr;
  }
};

namespace {

SSL_CTX* new_psk_context() {
  SSL_CTX* const c = SSL_CTX_new(TLS_method());
  if (!c || !SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) ||
      !SSL_CTX_set_ciphersuites(c, "TLS_AES_128_GCM_SHA256") || !SSL_CTX_set1_groups_list(c, "X25519:P-256") ||
      !SSL_CTX_set_num_tickets(c, 0)) {
    SSL_CTX_free(c);
    return nullptr;
  }
  SSL_CTX_set_options(c, SSL_OP_IGNORE_UNEXPECTED_EOF);  // what ends too early is seen by the messages inside
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_psk_use_session_callback(c, PskCallbacks::offer);
  SSL_CTX_set_psk_find_session_callback(c, PskCallbacks::find);
  return c;
}

std::string reason_of_tls() {
  const char* const text = ERR_reason_error_string(ERR_peek_last_error());
  return text ? text : "TLS failed";
}

}  // namespace

PskTls::PskTls(int socket, std::string identity, std::string key)
    : tls_socket_(socket), identity_(std::move(identity)), key_(std::move(key)), events_(POLLOUT) {
  begin(false);
}

PskTls::PskTls(int socket, Find find) : tls_socket_(socket), find_(std::move(find)), events_(POLLIN) { begin(true); }

void PskTls::begin(bool accepts) {
  static SSL_CTX* const context = new_psk_context();
  BIO* const bio = context ? tls_socket_.new_bio() : nullptr;
  ssl_ = bio ? SSL_new(context) : nullptr;
  if (!ssl_) return;
  SSL_set_bio(ssl_, bio, bio);
  SSL_set_app_data(ssl_, this);
  if (accepts) SSL_set_accept_state(ssl_);
  else SSL_set_connect_state(ssl_);
  if (!accepts) SSL_set_verify(ssl_, SSL_VERIFY_PEER, nullptr);  // trusts no certificate, only the key
}

PskTls::~PskTls() { SSL_free(ssl_); }

// 0: the socket is not ready.
Result<std::size_t> PskTls::outcome(int returned, std::size_t bytes) {
  if (returned > 0) return bytes;
  const int what = SSL_get_error(ssl_, returned);
  if (what == SSL_ERROR_WANT_READ || what == SSL_ERROR_WANT_WRITE) {
    events_ = what == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
    return std::size_t(0);
  }
  if (what != SSL_ERROR_SSL) return make_error(ErrorKind::network, "the connection is closed");
  if (!proven_) return make_error(ErrorKind::auth, fmt::format("the token was not proven ({})", reason_of_tls()));
  return make_error(ErrorKind::integrity, fmt::format("data was altered on the way ({})", reason_of_tls()));
}

Result<bool> PskTls::shake_hands() {
  if (proven_) return true;
  if (!ssl_)
    return make_error(ErrorKind::config, "this machine's OpenSSL allows no TLS 1.3",
                      "allow TLS 1.3 in its openssl.cnf, or use another OpenSSL 3");
  ERR_clear_error();
  RILLE_TRY(const auto done, outcome(SSL_do_handshake(ssl_), 1));
  if (!done) return false;
  // Any other handshake would need a certificate. Checked all the same, since everything rests on it.
  if (!SSL_session_reused(ssl_)) return make_error(ErrorKind::auth, "the token was not proven (no pre-shared key)");
  proven_ = true;
  return true;
}

Result<std::size_t> PskTls::write_some(const void* from, std::size_t bytes) {
  if (!tls_socket_.gathers()) return write_record(from, bytes);
  std::size_t written = 0;
  while (written < bytes) {
    if (tls_socket_.full()) RILLE_CHECK(tls_socket_.flush());
    if (tls_socket_.full()) break;
    RILLE_TRY(const auto n, write_record(static_cast<const std::byte*>(from) + written, bytes - written));
    written += n;
  }
  return written;
}

// In partial mode each call of SSL_write_ex writes one record.
Result<std::size_t> PskTls::write_record(const void* from, std::size_t bytes) {
  if (records_ >= records_max && !write_waits_) change_keys();
  ERR_clear_error();
  std::size_t written = 0;
  const int returned = SSL_write_ex(ssl_, from, bytes, &written);
  auto n = outcome(returned, written);
  write_waits_ = n && *n == 0;
  records_ += returned > 0;
  return n;
}

Result<std::size_t> PskTls::read_some(void* to, std::size_t bytes) {
  ERR_clear_error();
  std::size_t read = 0;
  const int returned = SSL_read_ex(ssl_, to, bytes, &read);
  auto n = outcome(returned, read);
  if (!n && tls_socket_.waiting()) tls_socket_.flush().ok();  // sends a TLS alert to the other side
  return n;
}

void PskTls::gather() {
  SSL_set_read_ahead(ssl_, 1);
  tls_socket_.gather();
}

void PskTls::change_keys() {
  records_ = 0;
  SSL_key_update(ssl_, SSL_KEY_UPDATE_NOT_REQUESTED);
}

}  // namespace rille::net
