// A wall-clock deadline, also tracked on the monotonic clock; it has passed once either clock says so. Setting the wall
// clock back does not extend it, and a machine that slept finds it passed as soon as it wakes.
#pragma once

#include <algorithm>

#include "runtime/core/base/time.hpp"

namespace rille {

class Deadline {
 public:
  Deadline(const Clock& clock, std::int64_t wall_us)
      : clock_(&clock), wall_us_(wall_us), monotonic_ns_(clock.monotonic_ns() + (wall_us - clock.wall_us()) * 1000) {}
  bool over() const { return left_us() <= 0; }
  std::int64_t left_ms() const { return over() ? 0 : (left_us() + 999) / 1000; }

 private:
  std::int64_t left_us() const {
    return std::min(wall_us_ - clock_->wall_us(), (monotonic_ns_ - clock_->monotonic_ns() + 999) / 1000);
  }
  const Clock* clock_;
  std::int64_t wall_us_, monotonic_ns_;
};

}  // namespace rille
