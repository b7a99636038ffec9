// Accepts connections at a listening socket and reads their messages, one event at a time. Unknown clients cost a
// descriptor until the door closes, at most guests_max of them.
#pragma once

#include <memory>

#include "runtime/compute/collective/socket.hpp"

namespace rille::collective {

struct Guest {
  Fd fd;
  MessageParser parser;
  std::string nonce;  // the challenge that its proof must answer
  int rank = -1;      // -1 until it is known
  Value told;
};

class Door {
 public:
  static constexpr std::size_t guests_max = 1024;
  explicit Door(int listener) : listener_(listener) {}

  enum class What { came, said, left };
  struct Event {
    What what = What::came;
    Guest* guest = nullptr;  // valid until show_out()
    Value message;
  };
  // timeout: with an empty message; or the reason of the Stop.
  Result<Event> next(const Limit& limit);
  void show_out(Guest* guest);
  std::vector<std::unique_ptr<Guest>>& guests() { return guests_; }

 private:
  int listener_;
  std::vector<std::unique_ptr<Guest>> guests_;
};

}  // namespace rille::collective
