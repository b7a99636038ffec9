#include "runtime/compute/collective/connection.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include "runtime/core/net/sign/parts.hpp"

namespace rille::collective {

namespace {

constexpr std::string_view rank_identity = "rille rank";  // of the pre-shared key, in clear text
constexpr std::string_view key_label = "rille ranks v1";  // salt of HKDF-Extract; the token is the input

net::PskTls tls_of(int socket, Connection::Side side, const std::string& token) {
  std::string key = net::hmac_sha256(key_label, token);
  if (side == Connection::Side::connects) return {socket, std::string(rank_identity), std::move(key)};
  return {socket, [key = std::move(key)](std::string_view id) { return id == rank_identity ? key : std::string(); }};
}

}  // namespace

Connection::Connection(Fd socket, Side side, const std::string& token)
    : socket_(std::move(socket)), tls_(tls_of(socket_.get(), side, token)) {}

Result<> Connection::shake_hands(const Limit& limit) {
  for (;;) {
    RILLE_TRY(const bool done, shake_hands());
    if (done) return success();
    RILLE_CHECK(limit.wait(fd(), events()));
  }
}

void Connection::finish() { ::shutdown(fd(), SHUT_WR); }

Result<bool> Connection::flush() {
  while (!outbox_.empty()) {
    RILLE_TRY(const auto n, write_some(outbox_.data(), outbox_.size()));
    if (n == 0) return false;
    outbox_.erase(0, n);
  }
  return true;
}

Result<> Connection::send(const Value& message, const Limit& limit) {
  RILLE_TRY(const auto bytes, encode_message(message));
  outbox_ += bytes;
  for (;;) {
    RILLE_TRY(const bool sent, flush());
    if (sent) return success();
    RILLE_CHECK(limit.wait(fd(), POLLOUT));
  }
}

void Connection::ring() {
  if (outbox_.empty()) outbox_ = bell;
  flush().ok();
}

Result<std::optional<Value>> Connection::receive_some() {
  char buffer[4096];
  for (;;) {
    RILLE_TRY(auto whole, parser_.next());
    if (whole) return whole;
    RILLE_TRY(const auto n, read_some(buffer, std::min(sizeof buffer, parser_.wanted())));
    if (n == 0) return std::optional<Value>();
    parser_.feed({buffer, n});
  }
}

Result<Value> Connection::receive(const Limit& limit) {
  for (;;) {
    RILLE_TRY(auto got, receive_some());
    if (got) return std::move(*got);
    RILLE_CHECK(limit.wait(fd(), POLLIN));
  }
}

}  // namespace rille::collective
