// ServerTls: the certificate and the key of a server, from PEM files. TLS 1.2 or later.
// ServerConnection: one connection that a server accepted, plain or through TLS. Error network: the other side is gone,
// or speaks no TLS. Loop thread only.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/core/loop/stream.hpp"
#include "runtime/core/net/tls_socket.hpp"

using SSL = struct ssl_st;
using SSL_CTX = struct ssl_ctx_st;

namespace rille::net {

class ServerTls {
 public:
  // Error config: a file cannot be read, needs a password, or the key is not the certificate's.
  static Result<std::unique_ptr<ServerTls>> open(const std::string& certificate_file, const std::string& key_file);
  ~ServerTls();
  ServerTls(const ServerTls&) = delete;
  ServerTls& operator=(const ServerTls&) = delete;

  // Whether the certificate is for this name or address.
  bool names(const std::string& host) const;

 private:
  friend class ServerConnection;
  explicit ServerTls(SSL_CTX* context) : context_(context) {}
  SSL_CTX* context_;
};

class ServerConnection {
 public:
  // `tls` null: without TLS. It must outlive the connection.
  ServerConnection(std::unique_ptr<Stream> stream, const ServerTls* tls);
  ~ServerConnection();
  ServerConnection(const ServerConnection&) = delete;
  ServerConnection& operator=(const ServerConnection&) = delete;

  // As Stream's. With TLS the first of them shakes hands.
  Async<std::size_t> read(char* out, std::size_t size, CancelToken token);
  Async<> write(std::string_view bytes, CancelToken token);
  // Tells the other side that nothing follows, and reads what it has still sent: closing a socket with unread bytes
  // would discard what was written.
  Async<> finish(CancelToken token);

 private:
  Async<> wait(int returned, CancelToken token);

  std::unique_ptr<Stream> stream_;
  TlsSocket tls_socket_;
  SSL* ssl_ = nullptr;  // null: no TLS, or OpenSSL has failed
  const bool secure_;
};

}  // namespace rille::net
