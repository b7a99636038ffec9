#include "runtime/workflow/engine/scheduler.hpp"

namespace rille::engine {

void Scheduler::schedule() {
  if (scheduled_) return;
  scheduled_ = true;
  loop_.post([this, alive = alive_] {
    if (*alive) pump();
  });
}

namespace {
constexpr int turn_calls_max = 256;
}

void Scheduler::pump() {
  auto alive = alive_;
  for (int calls = 0; !ready_.empty() || !deliveries_.empty(); ++calls) {
    if (calls == turn_calls_max) {  // busy fibers must not starve the loop's I/O and timers
      loop_.post([this, alive] {
        if (*alive) pump();
      });
      return;
    }
    auto& queue = ready_.empty() ? deliveries_ : ready_;
    auto fn = std::move(queue.front());
    queue.pop_front();
    fn();
    if (!*alive) return;  // fn() destroyed the run
    if (ready_.empty() && quiet_) quiet_();
  }
  scheduled_ = false;
}

}  // namespace rille::engine
