#include "bindings/host/alarm.hpp"

#include <chrono>

#include "runtime/core/base/time.hpp"

namespace rille::host {

namespace {
std::int64_t now_ms() { return system_clock().monotonic_ns() / 1'000'000; }
}  // namespace

Alarm::~Alarm() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void Alarm::set(std::int64_t ms) {
  std::int64_t due = now_ms() + ms;
  std::lock_guard lock(mutex_);
  if (due >= due_ms_) return;
  due_ms_ = due;
  wake_.notify_all();
}

void Alarm::watch() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    std::int64_t left = due_ms_ - now_ms();
    if (due_ms_ == INT64_MAX) {
      wake_.wait(lock);
    } else if (left > 0) {
      wake_.wait_for(lock, std::chrono::milliseconds(left));
    } else {
      due_ms_ = INT64_MAX;
      ring_();
    }
  }
}

}  // namespace rille::host
