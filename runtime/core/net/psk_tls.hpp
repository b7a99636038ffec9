// PskTls: TLS 1.3 over a connected non-blocking socket, with a pre-shared key instead of certificates. Each side proves
// that it has the key before the other reads anything from it; then everything is encrypted and verified. The
// Diffie-Hellman exchange gives every connection keys of its own: a recorded connection cannot be replayed, nor be read
// by someone who learns the key later. The key's identity crosses the network in clear text.
//
// Errors: auth: the other side did not prove the key; integrity: altered bytes; network: the other side is gone;
// config: OpenSSL allows no TLS 1.3. Threads: one at a time. The socket must outlive it.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "runtime/core/net/tls_socket.hpp"

using SSL = struct ssl_st;

namespace rille::net {

class PskTls {
 public:
  // The key (32 bytes) of an identity; "": there is none.
  using Find = std::function<std::string(std::string_view identity)>;
  PskTls(int socket, std::string identity, std::string key);  // of the side that connects
  PskTls(int socket, Find find);                              // of the side that accepts
  PskTls(PskTls&&) = delete;
  ~PskTls();

  // Continues the handshake. false: poll the socket for events() first.
  Result<bool> shake_hands();
  short events() const { return events_; }
  const std::string& identity() const { return identity_; }  // after the handshake

  // 0: the socket is not ready: poll it for events(). Then call write_some again with the same bytes and perhaps more.
  // Read until 0 before polling: poll does not see bytes that are decrypted already.
  Result<std::size_t> write_some(const void* from, std::size_t bytes);
  Result<std::size_t> read_some(void* to, std::size_t bytes);

  // For large data: from now on write_some gathers records, which flush_some() sends together, and one system call
  // reads a record and the beginning of the next (before, two calls per record).
  void gather();
  bool pending() const { return tls_socket_.waiting(); }            // whether there is something to flush
  Result<std::size_t> flush_some() { return tls_socket_.flush(); }  // the bytes sent; 0: the socket is not ready

  // Encrypts with new keys from now on, as RFC 8446 (5.5) asks after 2^24.5 records; write_some does it by itself.
  void change_keys();

 private:
  friend struct PskCallbacks;
  void begin(bool accepts);
  Result<std::size_t> outcome(int returned, std::size_t bytes);
  Result<std::size_t> write_record(const void* from, std::size_t bytes);

  TlsSocket tls_socket_;
  std::string identity_, key_;
  Find find_;
  short events_;
  SSL* ssl_ = nullptr;  // null: OpenSSL has failed
  bool proven_ = false, write_waits_ = false;
  std::uint64_t records_ = 0;  // sent with the present keys
};

}  // namespace rille::net
