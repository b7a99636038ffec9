// Until when a machine that is being ended has cost: what its release finds out by its looks, one after another.
// Private to runtime/lease.
#pragma once

#include <algorithm>

#include "runtime/workflow/lease/manager.hpp"
#include "runtime/workflow/lease/parts.hpp"
#include "runtime/workflow/provider/clocked.hpp"
#include "runtime/workflow/provider/left_over.hpp"
#include "runtime/workflow/provider/lifetime.hpp"

namespace rille::lease {

// As its provider says; else until the first of the looks that do not show it any more, not until the proof that it is
// gone; and, unless it was seen after that, at most until its provider's own switch has ended it: one that ended while
// nobody was there does not cost until somebody is. What is left of it, as its disk, costs until that is not shown.
class End {
 public:
  End(const Lease& lease, const provider::Provider& provider) : provider_(provider) {
    if (provider.traits().dead_man != provider::DeadMan::provider) return;
    switch_wall_us_ = lease.request.expires_wall_us;
    // Of a lease that was read in brief, whose switch was set for its end.
    if (!switch_wall_us_ && !lease.detached) switch_us_ = lease.expires_us;
  }

  void look() { machine_there_ = part_there_ = false; }
  void saw(const provider::Machine& m, bool own) {
    if (const std::int64_t at = provider::ended_at_us(m); own && at) ended_wall_us_ = at;
    if (m.state == provider::MachineState::gone || provider::is_free_left_over(m)) return;
    (provider::is_left_over(m) ? part_there_ : machine_there_) = true;
  }
  // known: everybody that was asked has answered.
  void looked(bool known, std::int64_t now_us) {
    if (machine_there_) machine_us_ = 0, alive_us_ = now_us;
    else if (known && !machine_us_) machine_us_ = now_us;
    if (machine_there_ || part_there_) all_us_ = 0;
    else if (known && !all_us_) all_us_ = now_us;
  }

  Ending found() const {
    Ending out;
    out.all_us = all_us_;
    out.machine_us = machine_us_;
    const std::int64_t skew_us = provider::skew_of(&provider_);  // known by now
    const std::int64_t set_us = switch_wall_us_ ? switch_wall_us_ - skew_us : switch_us_;
    if (ended_wall_us_) out.machine_us = std::min(machine_us_, ended_wall_us_ - skew_us);
    else if (set_us)
      out.machine_us = std::max(std::min(machine_us_, set_us + provider_.traits().teardown_ms * 1000), alive_us_);
    return out;
  }

 private:
  const provider::Provider& provider_;
  std::int64_t switch_wall_us_ = 0, switch_us_ = 0, ended_wall_us_ = 0, alive_us_ = 0, machine_us_ = 0, all_us_ = 0;
  bool machine_there_ = false, part_there_ = false;
};

}  // namespace rille::lease
