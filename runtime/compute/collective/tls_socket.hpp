// TlsSocket: the socket as OpenSSL sees it. At first every record is sent by itself. After gather(), for connections
// that carry much data, records are gathered and leave together, by flush().
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/core/base/result.hpp"

using BIO = struct bio_st;

namespace rille::collective {

class TlsSocket {
 public:
  explicit TlsSocket(int socket) : socket_(socket) {}  // does not own it
  TlsSocket(TlsSocket&&) = delete;

  BIO* new_bio();  // for OpenSSL, which owns the result, and frees it before this ends; null: OpenSSL has failed
  void gather();
  bool gathers() const { return gathers_; }

  bool waiting() const { return !out_.empty(); }  // whether something is gathered, or half sent
  // Whether flush() must be called before more is written.
  bool full() const;
  // Sends what is gathered. Returns the bytes sent; 0: the socket is not ready. network: the other side is gone.
  Result<std::size_t> flush();

 private:
  friend struct TlsBio;
  long write(const char* from, std::size_t bytes);

  int socket_;
  bool gathers_ = false;
  std::string out_;
  std::size_t sent_ = 0;  // of out_
};

}  // namespace rille::collective
