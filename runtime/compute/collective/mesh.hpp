// Mesh: every rank's connections to all others, and the data in transit. An operation queues its sends and receives,
// then turns until they are done; all connections make progress meanwhile, so no order of sends and receives can
// deadlock.
//
// The first error breaks the mesh: it is sent to all other ranks and stored, and every later call fails with it.
// Threads: one at a time; hurry() and the Stop from any.
#pragma once

#include <atomic>
#include <deque>
#include <functional>

#include "runtime/compute/collective/link.hpp"

namespace rille::collective {

class Mesh {
 public:
  // Blocks until all ranks have called it.
  static Result<std::unique_ptr<Mesh>> create(Meeting meeting, int rank, bool shared_memory, std::int64_t timeout_ms,
                                              std::shared_ptr<Stop> stop);
  ~Mesh();  // calls leave()

  int rank() const { return rank_; }
  int world() const { return int(peers_.size()); }
  int shared_links() const { return shared_links_; }
  const std::string& host() const { return host_; }  // the host name under which rank 0 saw this rank; empty at rank 0
  const std::optional<Error>& broken() const { return broken_; }

  // One operation, from begin() to turn_until_done() or fail(): the memory must stay valid throughout.
  Result<> begin(std::string what);  // or the error that broke the mesh
  void send(int to, const void* from, std::size_t bytes);
  // `then` is called by the turning thread when all bytes have arrived, and may queue more.
  void receive(int from, void* to, std::size_t bytes, std::function<Result<>()> then = {});
  // Until everything has been received; until everything has also been sent.
  Result<> turn_until_received();
  Result<> turn_until_done();
  // After a timeout: whether that rank has sent this many bytes that no receive was queued for. Writes them to `to`.
  bool unasked(int from, std::byte* to, std::size_t bytes);
  // Between operations: checks whether another rank is lost or has reported an error.
  Result<> look();
  // After an error: drops everything that was queued.
  Error fail(Error why);
  void leave();  // tells the others; no operation can begin afterwards
  // From now on every wait has at most `ms` left. Any thread.
  void hurry(std::int64_t ms);

 private:
  struct Out {
    const std::byte* at;
    std::size_t left;
  };
  struct In {
    std::byte* at;
    std::size_t left;
    std::function<Result<>()> then;  // may be empty
  };
  struct Peer {
    std::unique_ptr<Connection> control;
    std::unique_ptr<Link> link;  // may ring at `control`
    std::deque<Out> outs;
    std::deque<In> ins;
    bool idle() const { return ins.empty() && !sends(); }
    bool sends() const { return link && (!outs.empty() || link->pending()); }
    std::string gone;   // why it is gone
    bool left = false;  // it has closed its communicator
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
  Error closed(std::size_t r, const Error& why);
  Error lost(std::size_t r, const Error& why) const;
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
