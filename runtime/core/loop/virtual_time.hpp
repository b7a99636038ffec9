// VirtualTime: a simulated clock with the timers of the Loops made with it. When nothing is ready and no real work is
// running, time jumps to the next timer. Timers due at the same instant fire in the order in which they were set, so
// that every run of a program does the same things in the same order. A VirtualTime may outlive several loops, one
// after another: the simulated world continues while a simulated process dies and restarts. Loop thread only.
#pragma once

#include <functional>
#include <map>
#include <utility>

#include "runtime/core/base/time.hpp"

namespace rille {

class VirtualTime final : public Clock {
 public:
  // due time in microseconds, then a number that counts the timers in the order they were set
  using Key = std::pair<std::int64_t, std::uint64_t>;

  explicit VirtualTime(std::int64_t wall_us = 1'800'000'000'000'000) : wall_offset_us_(wall_us) {}
  std::int64_t wall_us() const override { return now_us_ + wall_offset_us_; }
  std::int64_t monotonic_ns() const override { return now_us_ * 1000; }

  Key add(std::int64_t ms, std::function<void()> fn);
  void remove(const Key& key) { timers_.erase(key); }
  // Jumps to the next timer and calls it. False: no timer is due before the end time.
  bool fire_next();
  // Change the clock while no loop runs: pass() lets time go by, set_wall_back() sets the wall clock back.
  void pass(std::int64_t ms) { now_us_ += ms * 1000; }
  void set_wall_back(std::int64_t ms) { wall_offset_us_ -= ms * 1000; }
  // Sets the wall-clock time after which no timer fires.
  void end_at(std::int64_t wall_us) { end_us_ = wall_us - wall_offset_us_; }
  std::uint64_t fired() const { return fired_; }

 private:
  std::int64_t now_us_ = 0, wall_offset_us_, end_us_ = INT64_MAX;
  std::uint64_t set_ = 0, fired_ = 0;
  std::map<Key, std::function<void()>> timers_;
};

}  // namespace rille
