#include "runtime/compute/collective/acceptor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

namespace rille::collective {

// Size of the poll set: the Stop, the listener, the clients, and the connections that have proven nothing yet.
Result<Acceptor::Event> Acceptor::next(const Limit& limit) {
  for (;;) {
    std::vector<pollfd> set{{limit.stop->fd(), POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const auto& c : clients_) set.push_back({c->connection->fd(), POLLIN, 0});
    for (const auto& c : pending_) set.push_back({c->connection->fd(), c->connection->events(), 0});
    RILLE_TRY(const int n, poll(set, limit));
    if (n == 0) continue;
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      if (!set[2 + i].revents) continue;
      Client* const client = clients_[i].get();
      auto message = client->connection->receive_some();
      if (!message) return Event{What::closed, client, {}};
      if (*message) return Event{What::message, client, std::move(**message)};
    }
    if (Client* const client = shake_hands(set)) return Event{What::connected, client, {}};
    if (set[1].revents) accept();
  }
}

// The number of sockets that are ready.
Result<int> Acceptor::poll(std::vector<pollfd>& set, const Limit& limit) {
  Limit sooner = limit;
  if (!pending_.empty()) sooner.end = std::min(limit.end, pending_.front()->proof_end);
  const int n = ::poll(set.data(), set.size(), sooner.left_ms());
  if (n < 0 && errno != EINTR) return errno_error("poll", "the sockets of ranks", errno);
  if (limit.stop->asked()) return limit.stop->why();
  if (n <= 0 && limit.left_ms() == 0) return make_error(ErrorKind::timeout, "");
  if (n > 0) return n;
  const auto now = std::chrono::steady_clock::now();
  while (!pending_.empty() && pending_.front()->proof_end <= now) drop_pending(0);
  return 0;
}

// A client that has proven the token just now; null: none.
Client* Acceptor::shake_hands(const std::vector<pollfd>& set) {
  const std::size_t first = 2 + clients_.size();
  for (std::size_t i = pending_.size(); i-- > 0;) {
    if (!set[first + i].revents) continue;
    const auto done = pending_[i]->connection->shake_hands();
    if (!done) drop_pending(i);
    if (!done || !*done) continue;
    clients_.push_back(std::move(pending_[i]));
    pending_.erase(pending_.begin() + std::ptrdiff_t(i));
    return clients_.back().get();
  }
  return nullptr;
}

void Acceptor::accept() {
  Fd fd = accept_from(listener_);
  if (!fd.valid()) return;
  if (pending_.size() >= pending_max_) drop_pending(0);
  auto client = std::make_unique<Client>();
  client->address = remote_address(fd.get());
  client->proof_end = std::chrono::steady_clock::now() + std::chrono::milliseconds(proof_ms_);
  client->connection = std::make_unique<Connection>(std::move(fd), Connection::Side::accepts, token_);
  pending_.push_back(std::move(client));
}

void Acceptor::drop_pending(std::size_t i) {
  ++strangers_;
  last_stranger_ = pending_[i]->address;
  pending_.erase(pending_.begin() + std::ptrdiff_t(i));
}

void Acceptor::drop(Client* client) {
  std::erase_if(clients_, [client](const auto& c) { return c.get() == client; });
}

std::string Acceptor::strangers() const {
  if (strangers_ == 0) return "";
  const std::string last = to_string(last_stranger_);
  if (strangers_ == 1) return fmt::format("a connection from {} did not prove the token", last);
  return fmt::format("{} connections did not prove the token, the last one from {}", strangers_, last);
}

}  // namespace rille::collective
