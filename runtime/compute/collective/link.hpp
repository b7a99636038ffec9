// Link: a byte stream in each direction between two ranks; its methods never block. It uses TCP, or two ring buffers
// in memory mapped by both processes. An idle rank sleeps in poll(). With TCP it polls the socket; with ring buffers
// the other rank sees that this one sleeps and wakes it by a bell message on the control connection.
//
// Errors: network: the other rank is gone; integrity: the other rank has written invalid data. Threads: one at a
// time.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/compute/collective/rendezvous.hpp"

namespace rille::collective {

class Link {
 public:
  virtual ~Link() = default;
  // returns the bytes written; 0: no room now. They are sent by flush()
  virtual Result<std::size_t> write_some(const std::byte* from, std::size_t bytes) = 0;
  // returns the bytes read; 0: no data now
  virtual Result<std::size_t> read_some(std::byte* to, std::size_t bytes) = 0;
  // Returns the bytes sent; 0: no room now.
  virtual Result<std::size_t> flush() { return std::size_t(0); }
  virtual bool pending() const { return false; }  // whether written bytes must still be flushed
  // nothing more will be written: the other rank reads an end after the rest
  virtual void finish() {}
  // Tells the other rank whether this rank is going to sleep until a bell. Check the link once more after the call.
  virtual void sleeps(bool) {}
  virtual int socket() const { return -1; }  // the socket to poll; -1: the other rank sends a bell instead
};

std::unique_ptr<Link> tcp_link(std::unique_ptr<Connection> data);

// Sets up shared memory with the ranks of this machine. For each pair, one rank creates the memory and sends its
// location; the other rank maps it. If mapping fails (another container), the pair uses TCP. Sets up all pairs at
// once.
Result<std::vector<std::unique_ptr<Link>>> share_memory(Meeting& meeting, int rank, const Limit& limit);

}  // namespace rille::collective
