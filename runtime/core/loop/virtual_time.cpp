#include "runtime/core/loop/virtual_time.hpp"

#include <algorithm>

namespace rille {

VirtualTime::Key VirtualTime::add(std::int64_t ms, std::function<void()> fn) {
  constexpr std::int64_t ms_max = INT64_MAX / 4000;  // 73 million years, so that adding two times cannot overflow
  Key key(now_us_ + std::clamp<std::int64_t>(ms, 0, ms_max) * 1000, ++set_);
  timers_.emplace(key, std::move(fn));
  return key;
}

bool VirtualTime::fire_next() {
  auto first = timers_.begin();
  if (first == timers_.end() || first->first.first > end_us_) return false;
  now_us_ = std::max(now_us_, first->first.first);
  ++fired_;
  auto fn = std::move(first->second);
  timers_.erase(first);
  fn();
  return true;
}

}  // namespace rille
