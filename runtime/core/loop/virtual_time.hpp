// VirtualTime: a clock that nobody waits for. A Loop made with it has its timers here: when nothing is ready and no
// real work is under way, time jumps to the next timer. Timers of one instant fire in the order in which they were
// set, so the same program does the same things in the same order. It may outlive its loops, one after the other: a
// simulated world goes on while the process in it dies and is started again. Loop thread only.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "runtime/core/base/time.hpp"

namespace rille {

class VirtualTime final : public Clock {
 public:
  using Key = std::pair<std::int64_t, std::uint64_t>;  // when it is due; how many were set before it

  explicit VirtualTime(std::int64_t wall_us = 1'800'000'000'000'000) : wall_offset_us_(wall_us) {}
  std::int64_t wall_us() const override { return now_us_ + wall_offset_us_; }
  std::int64_t monotonic_ns() const override { return now_us_ * 1000; }

  Key add(std::int64_t ms, std::function<void()> fn);
  void remove(const Key& key) { timers_.erase(key); }
  // Jumps to the next timer and calls it. False: there is none before the end of time.
  bool fire_next();
  // While nobody runs: the world goes on without a process, or the wall clock is set.
  void pass(std::int64_t ms) { now_us_ += ms * 1000; }
  void set_wall_back(std::int64_t ms) { wall_offset_us_ -= ms * 1000; }
  // Of the wall clock: no timer fires after it.
  void end_at(std::int64_t wall_us) { end_us_ = wall_us - wall_offset_us_; }
  std::uint64_t fired() const { return fired_; }

 private:
  std::int64_t now_us_ = 0, wall_offset_us_, end_us_ = INT64_MAX;
  std::uint64_t set_ = 0, fired_ = 0;
  std::map<Key, std::function<void()>> timers_;
};

}  // namespace rille
