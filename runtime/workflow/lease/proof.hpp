// Proof: the time after which a machine that the provider does not show does not exist, because a machine created by an
// earlier request would be visible by then. If the wall clock is set forward, the proof does not come earlier: in the
// process that sent the request, the same time must pass on the monotonic clock. Private to runtime/workflow/lease.
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

// This process's proofs, by lease id. The wait on the monotonic clock starts when a lease's proof is first looked up.
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
