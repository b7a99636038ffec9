#include "runtime/compute/collective/door.hpp"

#include <poll.h>

#include <cerrno>

namespace rille::collective {

Result<Door::Event> Door::next(const Limit& limit) {
  for (;;) {
    std::vector<pollfd> set{{limit.stop->fd(), POLLIN, 0}};
    set.push_back({guests_.size() < guests_max ? listener_ : -1, POLLIN, 0});
    for (const auto& g : guests_) set.push_back({g->fd.get(), POLLIN, 0});
    const int n = ::poll(set.data(), set.size(), limit.left_ms());
    if (n < 0 && errno != EINTR) return errno_error("poll", "the sockets of ranks", errno);
    if (limit.stop->asked()) return limit.stop->why();
    if (n <= 0) {
      if (limit.left_ms() == 0) return make_error(ErrorKind::timeout, "");
      continue;
    }
    for (std::size_t i = 2; i < set.size(); ++i) {
      if (!set[i].revents) continue;
      Guest* const guest = guests_[i - 2].get();
      auto said = receive_some(guest->fd.get(), guest->parser);
      if (!said) return Event{What::left, guest, {}};
      if (*said) return Event{What::said, guest, std::move(**said)};
    }
    if (!set[1].revents) continue;
    Fd fd = accept_from(listener_);
    if (!fd.valid()) continue;
    guests_.push_back(std::make_unique<Guest>());
    guests_.back()->fd = std::move(fd);
    return Event{What::came, guests_.back().get(), {}};
  }
}

void Door::show_out(Guest* guest) {
  std::erase_if(guests_, [guest](const auto& g) { return g.get() == guest; });
}

}  // namespace rille::collective
