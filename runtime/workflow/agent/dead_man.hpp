// DeadMan, the dead man's switch: decides when an agent must end itself without being asked. It reads no clock; the
// caller passes the wall time in microseconds, so that tests control it.
#pragma once

#include <cstdint>

#include "runtime/core/base/channel_spec.hpp"

namespace rille::agent {

class DeadMan {
 public:
  // A machine without an expiry waits at most this long for a runner to fetch a call's result.
  static constexpr std::int64_t unfetched_ms_max = 7LL * 86'400'000;

  struct Now {
    std::int64_t wall_us = 0;
    bool busy = false;       // a runner is connected, or a call runs
    bool unfetched = false;  // a call is done, and no runner has fetched its result
    bool used = false;       // a call runs or was started, files were transferred, or the machine is busy (usage.hpp)
  };
  enum class Verdict { live, expired, orphaned, idle };

  DeadMan(InstanceFile machine, std::int64_t wall_us)
      : machine_(std::move(machine)), idle_since_us_(wall_us), used_us_(wall_us) {}

  Verdict look(const Now& now) {
    if (machine_.expires_wall_us > 0 && now.wall_us >= machine_.expires_wall_us) return Verdict::expired;
    // If the clock was set back, both periods start again.
    if (now.busy || now.wall_us < idle_since_us_) idle_since_us_ = now.wall_us;
    if (now.used || now.unfetched || now.wall_us < used_us_) used_us_ = now.wall_us;
    if (machine_.idle_after_ms > 0 && now.wall_us - used_us_ >= machine_.idle_after_ms * 1000) return Verdict::idle;
    std::int64_t limit_ms = machine_.orphan_after_ms;
    if (limit_ms <= 0 || (now.unfetched && machine_.expires_wall_us > 0)) return Verdict::live;
    if (now.unfetched && limit_ms < unfetched_ms_max) limit_ms = unfetched_ms_max;
    return now.wall_us - idle_since_us_ >= limit_ms * 1000 ? Verdict::orphaned : Verdict::live;
  }

 private:
  InstanceFile machine_;
  std::int64_t idle_since_us_;  // last time at which a runner was connected or a call ran
  std::int64_t used_us_;        // last time at which the machine was used or had an unfetched result
};

}  // namespace rille::agent
