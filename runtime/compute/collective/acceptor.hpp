// Accepts connections at a listening socket and reads their messages, one event at a time. Unknown clients cost a
// descriptor until the acceptor is destroyed, at most clients_max of them.
#pragma once

#include <memory>

#include "runtime/compute/collective/socket.hpp"

namespace rille::collective {

struct Client {
  Fd fd;
  MessageParser parser;
  std::string nonce;  // the challenge that its proof must answer
  int rank = -1;      // -1 until it is known
  Value hello;
};

class Acceptor {
 public:
  static constexpr std::size_t clients_max = 1024;
  explicit Acceptor(int listener) : listener_(listener) {}

  enum class What { connected, message, closed };
  struct Event {
    What what = What::connected;
    Client* client = nullptr;  // valid until drop()
    Value message;
  };
  // timeout: with an empty message; or the reason of the Stop.
  Result<Event> next(const Limit& limit);
  void drop(Client* client);
  std::vector<std::unique_ptr<Client>>& clients() { return clients_; }

 private:
  int listener_;
  std::vector<std::unique_ptr<Client>> clients_;
};

}  // namespace rille::collective
