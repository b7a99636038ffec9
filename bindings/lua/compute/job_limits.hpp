// The limits of a run, for a job over data on another thread.
#pragma once

#include <memory>

#include "bindings/lua/compute/tensor.hpp"
#include "runtime/compute/data/pace.hpp"

namespace rille::lua {

struct JobLimits {
  std::shared_ptr<Work> work;
  std::uint64_t ends = 0;  // Work::ends() at the start of the job
  std::shared_ptr<MemoryUse> memory;
  std::shared_ptr<DiskUse> disk;

  static JobLimits of(LuaHost& host) {
    return {host.work(), host.work() ? host.work()->ends() : 0, host.options().memory, host.options().disk};
  }

  // Calls job(look) -> Result. If the run's work is ended meanwhile, `look` leaves the job, and the reason is the
  // result.
  template <class F>
  auto run(const F& job) const -> decltype(job(data::Look())) {
    struct Ended {};
    const data::Look look = [this] {
      if (work && work->ended_since(ends)) throw Ended();
    };
    try {
      return job(look);
    } catch (const Ended&) { return Error(*work->why()); }
  }
};

}  // namespace rille::lua
