// Proof: an instant after which a machine that is not shown does not exist, because anything created by an earlier
// request would be visible by then. Setting the wall clock forward does not bring it nearer: in the process that sent
// the request, as much time must also pass on the monotonic clock. Private to runtime/workflow/lease.
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

// The proofs of this process, by lease. Each one's monotonic clock starts when the lease is first looked up.
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
