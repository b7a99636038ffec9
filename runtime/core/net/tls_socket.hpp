// TlsSocket: the socket that OpenSSL writes to. At first every record is sent by itself. After gather(), for
// connections with much data, records are collected and sent together by flush().
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <string>

#include "runtime/core/base/result.hpp"

using BIO = struct bio_st;

namespace rille::net {

class TlsSocket {
 public:
  explicit TlsSocket(int socket) : socket_(socket) {}  // does not own it
  TlsSocket(TlsSocket&&) = delete;

  // for OpenSSL, which owns the result; it must free it before this object ends; null: OpenSSL has failed
  BIO* new_bio();
  void gather();
  bool gathers() const { return gathers_; }

  bool waiting() const { return !out_.empty(); }  // whether gathered or partly sent data is left
  // Whether flush() must be called before more is written.
  bool full() const;
  // Sends the gathered data. Returns the bytes sent; 0: the socket is not ready. network: the other side is gone.
  Result<std::size_t> flush();

 private:
  friend struct TlsBio;
  long write(const char* from, std::size_t bytes);

  int socket_;
  bool gathers_ = false;
  std::string out_;
  std::size_t sent_ = 0;  // bytes of out_ that are sent
};

}  // namespace rille::net
