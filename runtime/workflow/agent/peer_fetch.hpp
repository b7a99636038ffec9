// PeerFetch: gets parts of a share from other machines of the run, for one pull. The runner names the machines, in the
// order in which they are asked. One that cannot be reached, has not the part, is slow, or gave other bytes than the
// runner's digests say, is not asked again by this pull. Loop thread only.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/workflow/agent/peer_link.hpp"
#include "runtime/workflow/agent/peer_wire.hpp"
#include "runtime/workflow/agent/share.hpp"

namespace rille::agent {

struct PeerLimits {
  PeerLimits() = default;
  std::int64_t meet_ms = 5'000;      // to connect, and to be known there
  std::int64_t silence_ms = 20'000;  // in this time it must advance by advance_bytes, or it is slow
  std::int64_t advance_bytes = 1 << 20;
  std::int64_t part_ms = 600'000;   // for a part
  std::int64_t digest_ms = 15'000;  // until the runner has told a part's digest
  std::int64_t shun_ms = 60'000;    // how long no pull tries an address again that could not be reached
};

// The addresses of an agent's other machines that could not be reached, and until when they are not tried.
using PeersShunned = std::map<std::string, std::int64_t>;

class PeerFetch {
 public:
  using Machine = std::vector<std::string>;  // its addresses
  using Sink = std::function<Result<>(std::string_view)>;
  using Pace = std::function<std::int64_t()>;  // milliseconds until more bytes may come

  PeerFetch(Loop& loop, std::shared_ptr<Share> share, std::vector<Machine> machines,
            std::shared_ptr<PeersShunned> shunned, PeerLimits limits);
  bool any() const;  // whether a machine is left that may be asked

  using Self = std::shared_ptr<PeerFetch>;
  // Asks the first machine that is left for a part, whose bytes go to `sink` in order. Returns which machine gave all
  // of it; -1: none did, and what went to `sink` is of no use. An error is the sink's, or the token's.
  static Async<int> get(Self self, PeerRequest part, Sink sink, Pace pace, CancelToken token);
  // Whether these bytes have the digest that the runner tells. If not, the machine that gave them is not asked again.
  static Async<bool> check(Self self, int machine, std::size_t part, std::string digest, CancelToken token);
  const std::vector<int>& liars() const { return liars_; }  // whose bytes had another digest

 private:
  struct Asked;
  static Async<std::unique_ptr<PeerLink>> link_to(Self self, int machine, CancelToken token);
  static Async<std::unique_ptr<PeerLink>> meet(Self self, int machine, CancelToken token);
  bool advances(Asked& asked, std::int64_t bytes) const;
  static Async<bool> await_bytes(Self self, Asked& asked, CancelToken token);
  static Async<bool> receive(Self self, Asked& asked, CancelToken token);
  void leave(int machine) { left_[static_cast<std::size_t>(machine)] = false; }
  bool shunned(const std::string& address) const;

  Loop& loop_;
  std::shared_ptr<Share> share_;
  std::vector<Machine> machines_;
  std::vector<bool> left_;
  std::vector<std::vector<std::unique_ptr<PeerLink>>> idle_;  // links of each machine
  std::shared_ptr<PeersShunned> shunned_;
  PeerLimits limits_;
  std::vector<int> liars_;
};

}  // namespace rille::agent
