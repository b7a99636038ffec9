// Who comes to a listening socket, and what each of them says: one event at a time. Strangers that say nothing, or
// nonsense, cost a descriptor until the door closes, and at most guests_max of them.
#pragma once

#include <memory>

#include "runtime/compute/collective/socket.hpp"

namespace rille::collective {

struct Guest {
  Fd fd;
  MessageParser parser;
  std::string nonce;  // that it must answer to
  int rank = -1;      // when it has told
  Value told;
};

class Door {
 public:
  static constexpr std::size_t guests_max = 1024;
  explicit Door(int listener) : listener_(listener) {}

  enum class What { came, said, left };
  struct Event {
    What what = What::came;
    Guest* guest = nullptr;  // stays until it is shown out
    Value message;
  };
  // timeout, with an empty message; or why it was called off.
  Result<Event> next(const Limit& limit);
  void show_out(Guest* guest);
  std::vector<std::unique_ptr<Guest>>& guests() { return guests_; }

 private:
  int listener_;
  std::vector<std::unique_ptr<Guest>> guests_;
};

}  // namespace rille::collective
