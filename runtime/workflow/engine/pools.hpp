// Pools: limits on concurrency and rate over all runs of one home. A permit is a row in the journal; if no process
// runs the permit's run, the permit does not count, and the next caller of the pool removes it. The rate follows the
// generic cell rate algorithm, with one stored time per pool: after an idle period `rate` permits are granted at once,
// then one each per_ms/rate. Loop thread only.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>

#include "runtime/core/base/value.hpp"
#include "runtime/core/loop/loop.hpp"
#include "runtime/core/store/journal.hpp"

namespace rille::engine {

struct PoolSpec {
  PoolSpec() = default;  // not an aggregate: see loop/task.hpp
  std::string name;
  std::int64_t slots = 0;             // most permits held at a time; 0: unlimited
  std::int64_t rate = 0, per_ms = 0;  // at most `rate` permits are granted per per_ms milliseconds; 0: unlimited
  Value to_value() const;
};

class Pools {
 public:
  using Alive = std::function<bool(const std::string& run)>;
  Pools(Loop& loop, store::Journal& journal, Alive alive) : loop_(loop), journal_(journal), alive_(std::move(alive)) {}

  // Waits for a permit; the waiters of this process get permits in the order of their calls. If the run already holds
  // the permit with this key, returns at once.
  Async<> acquire(PoolSpec pool, std::string key, store::Fence run, CancelToken token);
  void release(const std::string& pool, const std::string& key, const store::Fence& run);

 private:
  struct Waiter;
  struct Answer {
    bool granted = false;
    std::int64_t not_before_us = 0;  // not granted: when the rate allows the next permit; 0: no slot is free
  };
  Async<Answer> attempt(PoolSpec pool, std::string key, store::Fence run);
  void wake_next(const std::string& pool);

  Loop& loop_;
  store::Journal& journal_;
  Alive alive_;
  std::map<std::string, std::deque<Waiter*>> waiting_;  // pool name -> waiters of this process, in order
};

}  // namespace rille::engine
