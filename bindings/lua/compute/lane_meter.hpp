// Counts the processor time of a run's operations on the CPU device against its limit cpu_ms. Beyond the limit, ends
// the work and the run.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "bindings/host/limits.hpp"
#include "runtime/compute/device/processor_clock.hpp"
#include "runtime/core/base/work.hpp"

namespace rille::lua {

class LaneMeter final : public Work::Meter {
 public:
  // `over` is called on the watchdog's thread or the lane, once.
  LaneMeter(std::int64_t cpu_ms, std::shared_ptr<host::Spending> spent, std::function<void()> over);
  void begins() override;
  void ends() override;

 private:
  std::int64_t look();  // returns the time of the next look, in ns of the monotonic clock

  const std::int64_t limit_ns_;
  const std::shared_ptr<host::Spending> spent_;
  std::function<void()> over_;
  std::mutex mutex_;
  std::optional<device::ProcessorClock> clock_;  // guarded by mutex_, as are the next two
  bool runs_ = false;
  std::int64_t began_ns_ = 0;
  host::Watchdog::Watch watch_;  // last member: its callback uses the others
};

}  // namespace rille::lua
