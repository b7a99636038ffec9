// Pools: limits on concurrency and rate over all runs of one home. A permit is a row; a permit of a run without a
// runner does not count, and the next caller removes it. A rate is kept as one instant per pool (the generic cell rate
// algorithm): `rate` permits at once after a rest, then one each per/rate. Loop thread only.
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
  std::int64_t slots = 0;             // permits held at a time; 0: unlimited
  std::int64_t rate = 0, per_ms = 0;  // permits granted per period; 0: unlimited
  Value to_value() const;
};

class Pools {
 public:
  using Alive = std::function<bool(const std::string& run)>;
  Pools(Loop& loop, store::Journal& journal, Alive alive) : loop_(loop), journal_(journal), alive_(std::move(alive)) {}

  // Waits for a permit, first come, first served within this process. Calling again with the same key and run returns
  // the permit that it holds.
  Async<> acquire(PoolSpec pool, std::string key, store::Fence run, CancelToken token);
  void release(const std::string& pool, const std::string& key, const store::Fence& run);

 private:
  struct Waiter;
  struct Answer {
    bool granted = false;
    std::int64_t not_before_us = 0;  // earliest time by the rate; 0: no free slot
  };
  Async<Answer> attempt(PoolSpec pool, std::string key, store::Fence run);
  void wake_next(const std::string& pool);

  Loop& loop_;
  store::Journal& journal_;
  Alive alive_;
  std::map<std::string, std::deque<Waiter*>> waiting_;  // by pool
};

}  // namespace rille::engine
