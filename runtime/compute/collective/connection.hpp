// A connection between two ranks: TLS 1.3 over a non-blocking socket (net/psk_tls.hpp), with a pre-shared key that both
// sides derive from the communicator's token.
//
// Errors: auth: the other side did not prove the token; integrity: altered bytes, or an invalid message; network: the
// other side is gone. Threads: one at a time.
#pragma once

#include "runtime/compute/collective/message.hpp"
#include "runtime/compute/collective/socket.hpp"
#include "runtime/core/net/psk_tls.hpp"

namespace rille::collective {

class Connection {
 public:
  enum class Side { connects, accepts };
  Connection(Fd socket, Side side, const std::string& token);
  Connection(Connection&&) = delete;

  int fd() const { return socket_.get(); }
  // Continues the handshake. false: poll the socket for events() first.
  Result<bool> shake_hands() { return tls_.shake_hands(); }
  Result<> shake_hands(const Limit& limit);
  short events() const { return tls_.events(); }

  // Bytes without frames. 0: the socket is not ready. Then call write_some again with the same bytes and perhaps more.
  // Read until 0 before polling: poll does not see bytes that are decrypted already.
  Result<std::size_t> write_some(const void* from, std::size_t bytes) { return tls_.write_some(from, bytes); }
  Result<std::size_t> read_some(void* to, std::size_t bytes) { return tls_.read_some(to, bytes); }

  // For large data: from now on write_some gathers records, which flush_some() sends together, and one system call
  // reads a record and the beginning of the next (before, two calls per record). Not for messages, because poll does
  // not see that beginning.
  void gather() { tls_.gather(); }
  bool pending() const { return tls_.pending(); }                 // whether there is something to flush
  Result<std::size_t> flush_some() { return tls_.flush_some(); }  // the bytes sent; 0: the socket is not ready
  // nothing more will be written; flushed data still arrives
  void finish();

  // Messages. send: bytes left unsent at the time limit are sent before the next message.
  Result<> send(const Value& message, const Limit& limit);
  Result<std::optional<Value>> receive_some();  // at most one message; empty: it has not arrived
  Result<Value> receive(const Limit& limit);
  void ring();  // sends a bell, unless earlier bytes still wait: those wake the other side, too

  // Encrypts with new keys from now on, as RFC 8446 (5.5) asks after 2^24.5 records; write_some does it by itself.
  void change_keys() { tls_.change_keys(); }

 private:
  Result<bool> flush();

  Fd socket_;
  net::PskTls tls_;
  std::string outbox_;
  MessageParser parser_;
};

}  // namespace rille::collective
