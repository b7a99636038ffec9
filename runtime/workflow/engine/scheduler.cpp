#include "runtime/workflow/engine/scheduler.hpp"

namespace rille::engine {

void Scheduler::post() {
  loop_.post(life_.guard([this] { pump(); }));
}

void Scheduler::schedule() {
  if (!std::exchange(scheduled_, true)) post();
}

void Scheduler::release() {
  if (!std::exchange(held_, false)) return;
  ready_.push_back([] {});  // the fiber may wait now, so ask the on_quiet function
  if (std::exchange(parked_, false)) post();
  else schedule();
}

namespace {
constexpr int turn_calls_max = 32;
}

void Scheduler::pump() {
  const auto life = life_.watch();
  for (int calls = 0; !ready_.empty() || !deliveries_.empty(); ++calls) {
    if (held_) {
      parked_ = true;
      return;
    }
    if (calls == turn_calls_max) return post();  // busy fibers must not starve the loop's I/O and timers
    auto& queue = ready_.empty() ? deliveries_ : ready_;
    auto fn = std::move(queue.front());
    queue.pop_front();
    fn();
    if (life.ended()) return;  // fn() destroyed the run
    if (ready_.empty() && quiet_ && !held_) quiet_();
  }
  scheduled_ = false;
}

}  // namespace rille::engine
