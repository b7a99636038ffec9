#include "runtime/compute/collective/acceptor.hpp"

#include <poll.h>

#include <cerrno>

namespace rille::collective {

Result<Acceptor::Event> Acceptor::next(const Limit& limit) {
  for (;;) {
    std::vector<pollfd> set{{limit.stop->fd(), POLLIN, 0}};
    set.push_back({clients_.size() < clients_max ? listener_ : -1, POLLIN, 0});
    for (const auto& g : clients_) set.push_back({g->fd.get(), POLLIN, 0});
    const int n = ::poll(set.data(), set.size(), limit.left_ms());
    if (n < 0 && errno != EINTR) return errno_error("poll", "the sockets of ranks", errno);
    if (limit.stop->asked()) return limit.stop->why();
    if (n <= 0) {
      if (limit.left_ms() == 0) return make_error(ErrorKind::timeout, "");
      continue;
    }
    for (std::size_t i = 2; i < set.size(); ++i) {
      if (!set[i].revents) continue;
      Client* const client = clients_[i - 2].get();
      auto message = receive_some(client->fd.get(), client->parser);
      if (!message) return Event{What::closed, client, {}};
      if (*message) return Event{What::message, client, std::move(**message)};
    }
    if (!set[1].revents) continue;
    Fd fd = accept_from(listener_);
    if (!fd.valid()) continue;
    clients_.push_back(std::make_unique<Client>());
    clients_.back()->fd = std::move(fd);
    return Event{What::connected, clients_.back().get(), {}};
  }
}

void Acceptor::drop(Client* client) {
  std::erase_if(clients_, [client](const auto& g) { return g.get() == client; });
}

}  // namespace rille::collective
