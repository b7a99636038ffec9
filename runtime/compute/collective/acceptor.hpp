// Accepts connections at a listening socket and reads their messages, one event at a time. A connection that has not
// proven the token costs a descriptor for proof_ms at most, and there are at most 64 + world of them: the oldest is
// dropped for a new one.
#pragma once

#include <poll.h>

#include <deque>
#include <memory>

#include "runtime/compute/collective/connection.hpp"

namespace rille::collective {

struct Client {
  std::unique_ptr<Connection> connection;
  Address address;
  Instant proof_end;
  int rank = -1;  // -1 until it is known
  Value hello;
};

class Acceptor {
 public:
  static constexpr std::int64_t proof_ms = 10'000;
  Acceptor(int listener, std::string token, int world, std::int64_t ms = proof_ms)
      : listener_(listener), token_(std::move(token)), pending_max_(64 + std::size_t(world)), proof_ms_(ms) {}

  // connected: it has proven the token.
  enum class What { connected, message, closed };
  struct Event {
    What what = What::connected;
    Client* client = nullptr;  // valid until drop()
    Value message;
  };
  // timeout: with an empty message; or the reason of the Stop.
  Result<Event> next(const Limit& limit);
  void drop(Client* client);
  std::vector<std::unique_ptr<Client>>& clients() { return clients_; }  // that have proven the token
  // "a connection from 10.0.0.9:4711 did not prove the token"; empty: all did.
  std::string strangers() const;

 private:
  void accept();
  void drop_pending(std::size_t i);
  Result<int> poll(std::vector<pollfd>& set, const Limit& limit);
  Client* shake_hands(const std::vector<pollfd>& set);

  int listener_;
  std::string token_;
  std::size_t pending_max_;
  std::int64_t proof_ms_;
  std::deque<std::unique_ptr<Client>> pending_;  // the oldest first
  std::vector<std::unique_ptr<Client>> clients_;
  int strangers_ = 0;
  Address last_stranger_;
};

}  // namespace rille::collective
