#include "bindings/host/turn.hpp"

#include <algorithm>

#include "bindings/host/host.hpp"
#include "runtime/core/base/time.hpp"

namespace rille::host {

namespace {
constexpr std::int64_t turn_share_ns = 10'000'000;
}

void Turn::begin(std::int64_t budget_ms) {
  served_ = false;
  if (budget_ms < 0) share_ns_ = turn_share_ns;
  else due_ns_ = system_clock().monotonic_ns() + budget_ms * 1'000'000;
}

void Turn::end() { due_ns_ = share_ns_ = Watchdog::never; }

std::int64_t Turn::due_ns(std::int64_t now) const {
  return share_ns_ == Watchdog::never ? due_ns_ : std::min(due_ns_, now + share_ns_);
}

void Turn::later(std::weak_ptr<LuaHost*> host) {
  waiting_.push_back(std::move(host));
  post();
}

void Turn::post() {
  if (std::exchange(posted_, true)) return;
  loop_.post([self = shared_from_this()] { self->next(); });
}

void Turn::next() {
  posted_ = false;
  if (served_ && system_clock().monotonic_ns() >= due_ns_) return post();
  served_ = true;
  while (!waiting_.empty()) {
    std::shared_ptr<LuaHost*> host = waiting_.front().lock();
    waiting_.pop_front();
    if (!host || !*host) continue;  // the run has ended in the meantime
    (*host)->go_on();
    break;
  }
  if (!waiting_.empty()) post();
}

}  // namespace rille::host
