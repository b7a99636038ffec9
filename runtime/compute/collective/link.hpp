// Link: a byte stream in each direction between two ranks, which never blocks: over TCP, or two rings in memory mapped
// by both processes. An idle rank sleeps in poll(): on the socket with TCP; with rings the other side, when it sees
// that the rank sleeps, wakes it by a bell message on the control connection.
//
// Errors: network: the other side is gone; integrity: it has written invalid data. Threads: one at a time.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/compute/collective/rendezvous.hpp"

namespace rille::collective {

class Link {
 public:
  virtual ~Link() = default;
  virtual Result<std::size_t> write_some(const std::byte* from, std::size_t bytes) = 0;  // 0: no room now
  virtual Result<std::size_t> read_some(std::byte* to, std::size_t bytes) = 0;           // 0: no data now
  // Tells the other side that this one will sleep until a bell; check the link once more afterwards.
  virtual void sleeps(bool) {}
  virtual int socket() const { return -1; }  // to poll; -1: a bell is sent
};

std::unique_ptr<Link> tcp_link(Fd data);

// Shares memory with the ranks of this machine. For each pair one rank creates it and sends its location; the other
// maps it, or cannot (another container): then they use TCP. Sets up all pairs at once.
Result<std::vector<std::unique_ptr<Link>>> share_memory(Meeting& meeting, int rank, const Limit& limit);

}  // namespace rille::collective
