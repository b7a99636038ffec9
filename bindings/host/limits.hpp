// The limits that an embedder sets for a script, and the clock that enforces the limits of time. A run and the child
// runs that it starts draw on one Spending; the slice and the memory are each host's own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "bindings/host/watchdog.hpp"
#include "runtime/core/base/error.hpp"

namespace rille::host {

// 0: no limit.
struct Limits {
  std::int64_t slice_ms = 0;      // Lua of one fiber without waiting
  std::int64_t wall_ms = 0;       // from the start of the run to its end
  std::int64_t cpu_ms = 0;        // processor time of all Lua of the run, its tensors on the CPU, and its kernels
  std::int64_t output_bytes = 0;  // of print
  std::int64_t fibers_max = 0;    // at a time
  // Whether the script's Lua must be interruptible at any instruction, which compiled code is not.
  bool timed() const { return slice_ms > 0 || wall_ms > 0 || cpu_ms > 0; }
  bool any() const { return timed() || output_bytes > 0 || fibers_max > 0; }
};

// The amounts used so far by a run and its child runs. Host's thread only, except for lane_ns.
struct Spending {
  std::int64_t wall_due_ns = Watchdog::never;
  std::int64_t lua_ns = 0;
  std::atomic<std::int64_t> lane_ns{0};  // processor time of tensors and kernels, summed over all threads
  std::int64_t computed_ns() const { return lua_ns + lane_ns.load(); }
  std::int64_t grace_ns = 0;  // Lua that cleanup after a limit of time has run
  std::int64_t output_bytes = 0;
  std::int64_t fibers = 0;
  void renew() {
    wall_due_ns = Watchdog::never;
    lua_ns = grace_ns = output_bytes = fibers = 0;
    lane_ns.store(0);
  }
};

// How long cleanup may wait after wall_ms; then what it waits for is cancelled, too.
std::int64_t cleanup_wait_ms(std::int64_t wall_ms);

Error wall_error(std::int64_t wall_ms);
Error cpu_error(std::int64_t cpu_ms);

// Measures the Lua of one host. After a limit of time cleanup code has one grace, which is not renewed.
class LimitClock {
 public:
  // `ring` is called on the watchdog's thread when a limit may be exceeded, and again until Lua stops.
  LimitClock(const Limits& limits, std::shared_ptr<Spending> spent, std::function<void()> ring);
  bool begin();  // a fiber is resumed; true: a limit is exceeded already
  // gave_way: the fiber is still computing and is resumed later; else it waits or has ended
  void end(bool gave_way);
  std::optional<Error> exceeded() const;  // which limit, while Lua runs
  void begin_grace();                     // a limit was exceeded
  // Starts the next call with a renewed Spending. Call while no Lua runs.
  void renew(std::shared_ptr<Spending> spent) {
    in_grace_ = false;
    spent_ = std::move(spent);
  }
  void end_grace();         // Lua does not run any more
  bool grace_over() const;  // while Lua runs
  bool grace_spent() const { return in_grace_ && grace_left_ns() <= 0; }
  bool due() const { return in_grace_ ? grace_over() : exceeded().has_value(); }

 private:
  std::int64_t due_ns(std::int64_t now) const;
  std::int64_t grace_left_ns() const;

  Limits limits_;
  std::shared_ptr<Spending> spent_;
  bool in_grace_ = false;
  std::int64_t began_ns_ = 0;  // 0: no Lua runs
  std::int64_t slice_ns_ = 0;  // part of the slice that the fiber had used when it gave way
  std::int64_t grace_began_ns_ = 0;
  std::atomic<bool> runs_{false};  // read by the watchdog
  Watchdog::Watch watch_;
};

}  // namespace rille::host
