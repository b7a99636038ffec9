// VirtualTime: a simulated clock. It owns the timers of a Loop made with it: when nothing is ready and no real work is
// under way, time jumps to the next timer. Timers due at the same instant fire in the order in which they were set, so
// a program does the same things in the same order each time. It may outlive several loops in turn: the simulated
// world continues while the process in it dies and restarts. Loop thread only.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "runtime/core/base/time.hpp"

namespace rille {

class VirtualTime final : public Clock {
 public:
  using Key = std::pair<std::int64_t, std::uint64_t>;  // due time; number of timers set before

  explicit VirtualTime(std::int64_t wall_us = 1'800'000'000'000'000) : wall_offset_us_(wall_us) {}
  std::int64_t wall_us() const override { return now_us_ + wall_offset_us_; }
  std::int64_t monotonic_ns() const override { return now_us_ * 1000; }

  Key add(std::int64_t ms, std::function<void()> fn);
  void remove(const Key& key) { timers_.erase(key); }
  // Jumps to the next timer and calls it. False: there is none before the end time.
  bool fire_next();
  // For use while no loop runs: time passes without a process, or the wall clock is set back.
  void pass(std::int64_t ms) { now_us_ += ms * 1000; }
  void set_wall_back(std::int64_t ms) { wall_offset_us_ -= ms * 1000; }
  // A wall-clock time; no timer fires after it.
  void end_at(std::int64_t wall_us) { end_us_ = wall_us - wall_offset_us_; }
  std::uint64_t fired() const { return fired_; }

 private:
  std::int64_t now_us_ = 0, wall_offset_us_, end_us_ = INT64_MAX;
  std::uint64_t set_ = 0, fired_ = 0;
  std::map<Key, std::function<void()>> timers_;
};

}  // namespace rille
