// Proof: an instant from which on what is not shown is not there, because whatever was sent would be visible by then.
// A wall clock that is set forward does not bring it nearer: in the process that has sent it as much time must have
// passed by the monotonic clock as well. Private to runtime/lease.
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "runtime/core/base/time.hpp"

namespace rille::lease {

class Proof {
 public:
  Proof(const Clock& clock, std::int64_t wall_us)
      : wall_us_(wall_us),
        monotonic_ns_(clock.monotonic_ns() + std::max<std::int64_t>(wall_us - clock.wall_us(), 0) * 1000) {}
  std::int64_t wall_us() const { return wall_us_; }
  bool holds(const Clock& clock) const { return clock.wall_us() >= wall_us_ && clock.monotonic_ns() >= monotonic_ns_; }

 private:
  std::int64_t wall_us_, monotonic_ns_;
};

// Those of this process, by lease: since when they count is when they were first heard of.
class Proofs {
 public:
  const Proof& of(const Clock& clock, const std::string& lease, std::int64_t wall_us) {
    const auto known = all_.find(lease);
    if (known != all_.end() && known->second.wall_us() == wall_us) return known->second;
    return all_.insert_or_assign(lease, Proof(clock, wall_us)).first->second;
  }
  void forget(const std::string& lease) { all_.erase(lease); }

 private:
  std::map<std::string, Proof> all_;
};

}  // namespace rille::lease
