// PeerLink: the connection between two machines of a run that pass on an object. TCP with TLS 1.3 and the share's key
// (net/psk_tls.hpp), whose identity is the share's id: both sides prove that the runner has told them of the share
// before one of them reads a byte of the other. One coroutine at a time. Loop thread only.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/core/loop/stream.hpp"
#include "runtime/core/net/psk_tls.hpp"

namespace rille::agent {

class PeerLink {
 public:
  static constexpr std::size_t id_chars = 32, key_chars = 64;  // hexadecimal digits

  // auth: there it is not known, or not yet; network: not reached.
  static Async<std::unique_ptr<PeerLink>> connect(Loop& loop, std::string address, std::string id, std::string key,
                                                  CancelToken token);
  // `find`: the key of a share, in hexadecimal digits; "": there is none.
  static Async<std::unique_ptr<PeerLink>> accept(std::unique_ptr<Stream> stream,
                                                 std::function<std::string(std::string_view)> find, CancelToken token);
  const std::string& id() const { return tls_->identity(); }

  Async<> write(std::string_view bytes, CancelToken token);                 // the caller keeps the bytes
  Async<std::size_t> read(char* to, std::size_t bytes, CancelToken token);  // at least one byte
  Async<std::string> read_message(CancelToken token);                       // peer_message_bytes

 private:
  explicit PeerLink(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {}
  Async<> shake_hands(CancelToken token);
  Async<> ready(CancelToken token);

  std::unique_ptr<Stream> stream_;
  std::unique_ptr<net::PskTls> tls_;
};

}  // namespace rille::agent
