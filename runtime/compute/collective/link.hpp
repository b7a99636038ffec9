// Link: how numbers get from one rank to another and back, a stream of bytes each way that takes and gives as much as
// it can and never waits. TCP, or two rings in memory that both processes have mapped. Who has nothing to do sleeps in
// poll(): with TCP on the socket; with rings the other side writes a bell into the control connection when it sees that
// the sleeper is one.
//
// Errors: network, the other side is gone; integrity, it has written nonsense. Threads: one at a time.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/compute/collective/rendezvous.hpp"

namespace rille::collective {

class Link {
 public:
  virtual ~Link() = default;
  virtual Result<std::size_t> write_some(const std::byte* from, std::size_t bytes) = 0;  // 0: no room now
  virtual Result<std::size_t> read_some(std::byte* to, std::size_t bytes) = 0;           // 0: nothing now
  // A ring's reader or writer will not look until it is rung for; look once more after saying so.
  virtual void sleeps(bool) {}
  virtual int socket() const { return -1; }  // to poll for; none: a bell comes
};

std::unique_ptr<Link> tcp_link(Fd data);

// Memory shared with the ranks of this machine. One of the two makes it and says where it is; the other maps it, or
// cannot (another container): then they use TCP. Both ends of all pairs at once.
Result<std::vector<std::unique_ptr<Link>>> share_memory(Meeting& meeting, int rank, const Limit& limit);

}  // namespace rille::collective
