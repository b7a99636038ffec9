#include "runtime/engine/scheduler.hpp"

namespace rille::engine {

void Scheduler::schedule() {
  if (scheduled_) return;
  scheduled_ = true;
  loop_.post([this, alive = alive_] { if (*alive) pump(); });
}

void Scheduler::pump() {
  auto alive = alive_;
  while (!ready_.empty() || !deliveries_.empty()) {
    auto& queue = ready_.empty() ? deliveries_ : ready_;
    auto fn = std::move(queue.front());
    queue.pop_front();
    fn();
    if (!*alive) return;  // the run was destroyed by what ran
    if (ready_.empty() && deliveries_.empty() && quiet_) quiet_();
  }
  scheduled_ = false;
}

}  // namespace rille::engine
