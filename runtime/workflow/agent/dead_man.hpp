// The dead man's switch: decides when an agent must end itself without being asked. A pure function of times, so that
// tests control the clock. Wall time in microseconds, since the machine's end is an absolute instant.
#pragma once

#include <cstdint>

#include "runtime/core/base/channel_spec.hpp"

namespace rille::agent {

class DeadMan {
 public:
  // A machine without an expiry keeps an unfetched result at most this long.
  static constexpr std::int64_t unfetched_ms_max = 7LL * 86'400'000;

  struct Now {
    std::int64_t wall_us = 0;
    bool busy = false;       // a runner is connected, or a call runs
    bool unfetched = false;  // a result has not been fetched
    bool used = false;       // a call runs or was started, files were transferred, or the machine is busy (usage.hpp)
  };
  enum class Verdict { live, expired, orphaned, idle };

  DeadMan(InstanceFile machine, std::int64_t wall_us)
      : machine_(std::move(machine)), idle_since_us_(wall_us), used_us_(wall_us) {}

  Verdict look(const Now& now) {
    if (machine_.expires_wall_us > 0 && now.wall_us >= machine_.expires_wall_us) return Verdict::expired;
    if (now.busy || now.wall_us < idle_since_us_) idle_since_us_ = now.wall_us;  // restarts if the clock was set back
    if (now.used || now.unfetched || now.wall_us < used_us_) used_us_ = now.wall_us;
    if (machine_.idle_after_ms > 0 && now.wall_us - used_us_ >= machine_.idle_after_ms * 1000) return Verdict::idle;
    std::int64_t limit_ms = machine_.orphan_after_ms;
    if (limit_ms <= 0 || (now.unfetched && machine_.expires_wall_us > 0)) return Verdict::live;
    if (now.unfetched && limit_ms < unfetched_ms_max) limit_ms = unfetched_ms_max;
    return now.wall_us - idle_since_us_ >= limit_ms * 1000 ? Verdict::orphaned : Verdict::live;
  }

 private:
  InstanceFile machine_;
  std::int64_t idle_since_us_;  // no runner since then
  std::int64_t used_us_;        // last use
};

}  // namespace rille::agent
