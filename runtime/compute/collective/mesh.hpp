// Mesh: every rank's connections to all others, and what is on its way through them. An operation queues what it sends
// and where it wants what it receives, then turns until that is done; all connections move meanwhile, so no order of
// sending and receiving can lock up.
//
// The first error ends the mesh: it is told to all other ranks and kept, and every later call fails with it. Threads:
// one at a time; hurry() and the Stop from any.
#pragma once

#include <atomic>
#include <deque>

#include "runtime/compute/collective/link.hpp"

namespace rille::collective {

class Mesh {
 public:
  // Blocks until all ranks have done the same.
  static Result<std::unique_ptr<Mesh>> create(Meeting meeting, int rank, bool shared_memory, std::int64_t timeout_ms,
                                              std::shared_ptr<Stop> stop);
  ~Mesh();  // leaves

  int rank() const { return rank_; }
  int world() const { return int(peers_.size()); }
  int shared_links() const { return shared_links_; }
  const std::string& host() const { return host_; }  // where rank 0 has seen this rank; empty at rank 0
  const std::optional<Error>& broken() const { return broken_; }

  // Between begin() and end() of an operation. Memory stays until it has ended.
  Result<> begin(std::string what);  // or why no operation can begin any more
  void send(int to, const void* from, std::size_t bytes);
  void receive(int from, void* to, std::size_t bytes);
  // Until all that was to be received is there; until all has been sent, too.
  Result<> turn_until_received();
  Result<> turn_until_done();
  // Between operations: whether another rank is gone without a word, or said that something went wrong.
  Result<> look();
  // After an error: everything that was queued is forgotten.
  Error fail(Error why);
  void leave();  // tells the others; no operation can begin any more
  // From now on whatever waits has `ms` left. Any thread.
  void hurry(std::int64_t ms);

 private:
  struct Out {
    const std::byte* at;
    std::size_t left;
  };
  struct In {
    std::byte* at;
    std::size_t left;
  };
  struct Peer {
    Fd control;
    MessageParser parser;
    std::unique_ptr<Link> link;
    std::deque<Out> outs;
    std::deque<In> ins;
    std::string gone;   // why it is not there any more
    bool left = false;  // it said so
  };
  Mesh(int rank, std::int64_t timeout_ms, std::shared_ptr<Stop> stop)
      : rank_(rank), timeout_ms_(timeout_ms), stop_(std::move(stop)) {}
  Result<> turn_until(bool (Mesh::*enough)() const);
  bool received() const;
  bool done() const;
  Result<bool> turn();
  Result<bool> turn(std::size_t r);
  Result<> sleep(Instant since);
  Result<> poll_all(Instant since);
  Result<> listen_to(std::size_t r);
  Result<> look_for_gone() const;
  Error closed(std::size_t r, const std::string& why);
  Error lost(std::size_t r, const std::string& why) const;
  Error late() const;
  void say(std::size_t r, const Value& words);

  int rank_;
  std::int64_t timeout_ms_;
  std::shared_ptr<Stop> stop_;
  std::vector<Peer> peers_;
  int shared_links_ = 0, spins_ = 0;
  std::string what_, host_;
  std::optional<Error> broken_;
  std::atomic<std::int64_t> hurry_ns_{0};  // steady clock; 0: none
};

}  // namespace rille::collective
