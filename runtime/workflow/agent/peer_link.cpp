#include "runtime/workflow/agent/peer_link.hpp"

#include <poll.h>

#include "runtime/core/net/sign/parts.hpp"
#include "runtime/workflow/agent/peer_wire.hpp"

namespace rille::agent {

namespace {
constexpr std::string_view share_key_label = "rille share v1";

std::string tls_key(std::string_view key) {
  return key.empty() ? std::string() : net::hmac_sha256(share_key_label, std::string(key));
}
}  // namespace

Async<std::unique_ptr<PeerLink>> PeerLink::connect(Loop& loop, std::string address, std::string id, std::string key,
                                                   CancelToken token) {
  RILLE_CO_TRY(std::unique_ptr<Stream> stream, co_await Stream::connect_tcp(loop, std::move(address), token));
  std::unique_ptr<PeerLink> link(new PeerLink(std::move(stream)));
  link->tls_ = std::make_unique<net::PskTls>(link->stream_->fd(), std::move(id), tls_key(key));
  RILLE_CO_CHECK(co_await link->shake_hands(token));
  co_return std::move(link);
}

Async<std::unique_ptr<PeerLink>> PeerLink::accept(std::unique_ptr<Stream> stream,
                                                  std::function<std::string(std::string_view)> find,
                                                  CancelToken token) {
  std::unique_ptr<PeerLink> link(new PeerLink(std::move(stream)));
  net::PskTls::Find key = [find = std::move(find)](std::string_view id) { return tls_key(find(id)); };
  link->tls_ = std::make_unique<net::PskTls>(link->stream_->fd(), std::move(key));
  RILLE_CO_CHECK(co_await link->shake_hands(token));
  co_return std::move(link);
}

Async<> PeerLink::ready(CancelToken token) {
  if (tls_->events() == POLLIN) co_return co_await stream_->readable(token);
  co_return co_await stream_->writable(token);
}

Async<> PeerLink::shake_hands(CancelToken token) {
  for (;;) {
    RILLE_CO_TRY(const bool done, tls_->shake_hands());
    if (done) break;
    RILLE_CO_CHECK(co_await ready(token));
  }
  tls_->gather();
  co_return success();
}

Async<> PeerLink::write(std::string_view bytes, CancelToken token) {
  while (!bytes.empty()) {
    RILLE_CO_TRY(const std::size_t n, tls_->write_some(bytes.data(), bytes.size()));
    bytes.remove_prefix(n);
    if (n > 0) continue;
    if (tls_->pending()) RILLE_CO_CHECK(co_await stream_->writable(token));
    else RILLE_CO_CHECK(co_await ready(token));
  }
  while (tls_->pending()) {
    RILLE_CO_CHECK(tls_->flush_some());
    if (tls_->pending()) RILLE_CO_CHECK(co_await stream_->writable(token));
  }
  co_return success();
}

Async<std::size_t> PeerLink::read(char* to, std::size_t bytes, CancelToken token) {
  for (;;) {
    RILLE_CO_TRY(const std::size_t n, tls_->read_some(to, bytes));
    if (n > 0) co_return n;
    RILLE_CO_CHECK(co_await ready(token));
  }
}

Async<std::string> PeerLink::read_message(CancelToken token) {
  std::string out(peer_message_bytes, '\0');
  for (std::size_t have = 0; have < out.size();) {
    RILLE_CO_TRY(const std::size_t n, co_await read(out.data() + have, out.size() - have, token));
    have += n;
  }
  co_return out;
}

}  // namespace rille::agent
