// End: finds out when a machine that is being released stopped costing money. A release queries the provider several
// times; each query is a look. Private to runtime/workflow/lease.
#pragma once

#include <algorithm>

#include "runtime/workflow/lease/manager.hpp"
#include "runtime/workflow/lease/parts.hpp"
#include "runtime/workflow/provider/clocked.hpp"
#include "runtime/workflow/provider/left_over.hpp"
#include "runtime/workflow/provider/lifetime.hpp"

namespace rille::lease {

// Takes the end that the provider reports, else the first look that no longer shows the machine, not the later proof
// that it is gone. If no look saw it alive after the time when the provider was to end it, the cost ends at that time
// plus teardown: a machine that ended while no process was looking costs nothing after its end. Leftovers such as a
// disk cost until they are no longer shown.
class End {
 public:
  End(const Lease& lease, const provider::Provider& provider) : provider_(provider) {
    if (provider.traits().dead_man != provider::DeadMan::provider) return;
    switch_wall_us_ = lease.request.expires_wall_us;
    // A lease from read_brief() has no request; the provider was told to end its machine at the lease's expiry.
    if (!switch_wall_us_ && !lease.detached) switch_us_ = lease.expires_us;
  }

  void look() { machine_there_ = part_there_ = false; }
  void saw(const provider::Machine& m, bool own) {
    if (const std::int64_t at = provider::ended_at_us(m); own && at) ended_wall_us_ = at;
    if (m.state == provider::MachineState::gone || provider::is_free_left_over(m)) return;
    (provider::is_left_over(m) ? part_there_ : machine_there_) = true;
  }
  // Ends a look. known: the provider answered every query of the look.
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
    const std::int64_t skew_us = provider::skew_of(&provider_);  // difference between the provider's clock and ours
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
