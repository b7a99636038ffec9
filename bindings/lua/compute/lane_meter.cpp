#include "bindings/lua/compute/lane_meter.hpp"

#include <algorithm>
#include <utility>

#include "runtime/core/base/time.hpp"

namespace rille::lua {

namespace {

constexpr std::int64_t look_least_ns = 1'000'000;

}  // namespace

LaneMeter::LaneMeter(std::int64_t cpu_ms, std::shared_ptr<host::Spending> spent, std::function<void()> over)
    : limit_ns_(cpu_ms * 1'000'000), spent_(std::move(spent)), over_(std::move(over)),
      watch_([this] { return look(); }) {}

void LaneMeter::begins() {
  {
    const std::lock_guard lock(mutex_);
    if (!clock_) clock_ = device::ProcessorClock::of_team();
    began_ns_ = clock_->ns();
    runs_ = true;
  }
  watch_.set(look());
}

void LaneMeter::ends() {
  watch_.clear();
  (void)look();
  const std::lock_guard lock(mutex_);
  spent_->lane_ns += clock_->ns() - began_ns_;
  runs_ = false;
}

std::int64_t LaneMeter::look() {
  std::function<void()> over;
  {
    const std::lock_guard lock(mutex_);
    if (!runs_) return host::Watchdog::never;
    const std::int64_t left = limit_ns_ - spent_->lane_ns.load() - (clock_->ns() - began_ns_);
    if (left > 0) return system_clock().monotonic_ns() + std::max(look_least_ns, left / clock_->threads());
    over = std::exchange(over_, nullptr);
  }
  if (over) over();
  return host::Watchdog::never;
}

}  // namespace rille::lua
