// Peers: the side of an agent that passes parts on. While a runner asks for it, it listens at the machine's private
// addresses. It knows the shares of all channels. A machine that proves a share's key (peer_link.hpp) gets a part as
// soon as the part is here; any other connection is closed after ten seconds. Loop thread only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/loop/stream.hpp"
#include "runtime/workflow/agent/peer_link.hpp"
#include "runtime/workflow/agent/peer_wire.hpp"
#include "runtime/workflow/agent/pull_fetch.hpp"
#include "runtime/workflow/agent/share.hpp"

namespace rille::agent {

class Peers {
 public:
  static constexpr std::size_t addresses_max = 4;
  static constexpr int links_max = 256, reads_max = 8;  // reads: parts that are in memory at the same time

  // `hosts`: where to listen; empty: at the private addresses.
  explicit Peers(Loop& loop, std::vector<std::string> hosts = {});
  using Self = std::shared_ptr<Peers>;
  // The addresses; none: this machine has no private address. Each open() needs a close(); the last one ends all links.
  static std::vector<std::string> open(const Self& self);
  void close();
  void add(const std::shared_ptr<Share>& share);

 private:
  static Task<void> accept(Self self, std::shared_ptr<Listener> listener, CancelToken token);
  static Task<void> serve(Self self, std::unique_ptr<Stream> stream, CancelToken token);
  static Async<> answer(Self self, PeerLink& link, std::shared_ptr<Share> share, PeerRequest asked, CancelToken token);
  static Async<bool> await_part(Self self, PeerLink& link, std::shared_ptr<Share> share, PeerRequest asked,
                                CancelToken token);
  std::shared_ptr<Share> find(std::string_view id);

  Loop& loop_;
  std::vector<std::string> hosts_, addresses_;
  std::map<std::string, std::weak_ptr<Share>, std::less<>> shares_;
  std::unique_ptr<CancelSource> open_;
  int users_ = 0, links_ = 0;
  PullSlots reads_;
};

}  // namespace rille::agent
