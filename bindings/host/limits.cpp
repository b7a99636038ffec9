#include "bindings/host/limits.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/time.hpp"

namespace rille::host {

namespace {

constexpr std::int64_t ms_ns = 1'000'000;
constexpr std::int64_t grace_max_ms = 100;
constexpr std::int64_t cleanup_wait_least_ms = 100, cleanup_wait_share = 20;
// A hook that another thread sets can be lost while Lua changes its own: it is set again until Lua has stopped.
constexpr std::int64_t ring_again_ns = 10 * ms_ns;

std::int64_t now_ns() { return system_clock().monotonic_ns(); }

Error limit_error(const char* limit, std::string message, std::string hint) {
  Error e = make_error(ErrorKind::timeout, std::move(message), std::move(hint));
  e.code = limit;
  return e;
}

}  // namespace

std::int64_t cleanup_wait_ms(std::int64_t wall_ms) {
  return std::max(cleanup_wait_least_ms, wall_ms / cleanup_wait_share);
}

Error wall_error(std::int64_t wall_ms) {
  return limit_error("wall_ms", fmt::format("the run took longer than {}", format_duration_ms(wall_ms)),
                     "raise the limit wall_ms");
}

Error cpu_error(std::int64_t cpu_ms) {
  return limit_error("cpu_ms", fmt::format("the run computed for {}", format_duration_ms(cpu_ms)),
                     "compute less, put the work into a call on an instance, or raise the limit cpu_ms");
}

LimitClock::LimitClock(const Limits& limits, std::shared_ptr<Spending> spent, std::function<void()> ring)
    : limits_(limits), spent_(std::move(spent)), watch_([this, ring = std::move(ring)] {
        if (!runs_.load()) return Watchdog::never;
        ring();
        return now_ns() + ring_again_ns;
      }) {}

std::int64_t LimitClock::grace_left_ns() const {
  std::int64_t grace_ms = limits_.slice_ms > 0 ? std::min(limits_.slice_ms, grace_max_ms) : grace_max_ms;
  return grace_ms * ms_ns - spent_->grace_ns;
}

std::int64_t LimitClock::due_ns(std::int64_t now) const {
  if (in_grace_) return now + std::max<std::int64_t>(0, grace_left_ns());
  std::int64_t due = spent_->wall_due_ns;
  if (limits_.slice_ms > 0) due = std::min(due, now + limits_.slice_ms * ms_ns - slice_ns_);
  if (limits_.cpu_ms > 0) due = std::min(due, now + limits_.cpu_ms * ms_ns - spent_->computed_ns());
  return due;
}

bool LimitClock::begin() {
  began_ns_ = now_ns();
  if (in_grace_) grace_began_ns_ = began_ns_;
  runs_.store(true);
  watch_.set(due_ns(began_ns_));
  return due();
}

void LimitClock::end(bool gave_way) {
  const std::int64_t now = now_ns();
  runs_.store(false);
  watch_.clear();
  spent_->lua_ns += now - began_ns_;
  slice_ns_ = gave_way ? slice_ns_ + now - began_ns_ : 0;
  if (in_grace_) spent_->grace_ns += now - grace_began_ns_;
  began_ns_ = 0;
}

std::optional<Error> LimitClock::exceeded() const {
  if (!began_ns_) return {};
  const std::int64_t now = now_ns();
  if (now >= spent_->wall_due_ns) return wall_error(limits_.wall_ms);
  if (limits_.slice_ms > 0 && slice_ns_ + now - began_ns_ >= limits_.slice_ms * ms_ns)
    return limit_error("slice_ms",
                       fmt::format("the script ran longer than its time slice of {} without waiting",
                                   format_duration_ms(limits_.slice_ms)),
                       "split the work, put it into a call on an instance, or raise the limit slice_ms");
  if (limits_.cpu_ms > 0 && spent_->computed_ns() + now - began_ns_ >= limits_.cpu_ms * ms_ns)
    return cpu_error(limits_.cpu_ms);
  return {};
}

void LimitClock::begin_grace() {
  if (in_grace_) return;
  in_grace_ = true;
  if (!began_ns_) return;
  grace_began_ns_ = now_ns();
  watch_.set(due_ns(grace_began_ns_));
}

void LimitClock::end_grace() {
  begin_grace();
  spent_->grace_ns = grace_max_ms * ms_ns;
}

bool LimitClock::grace_over() const { return in_grace_ && began_ns_ && now_ns() - grace_began_ns_ >= grace_left_ns(); }

}  // namespace rille::host
