#include "bindings/host/watchdog.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "runtime/core/base/time.hpp"

namespace rille::host {

namespace {

// Per process, so that a forked child neither waits for a mutex that a thread of its parent held nor uses its parent's
// thread.
struct OfProcess {
  explicit OfProcess(pid_t owner) : pid(owner) {}
  pid_t pid;
  std::mutex mutex;
  std::weak_ptr<Watchdog> dog;
  OfProcess* of_parent = nullptr;
};

std::atomic<OfProcess*> this_process{nullptr};

OfProcess& slot_of_process() {
  const pid_t pid = getpid();
  OfProcess* slot = this_process.load();
  while (!slot || slot->pid != pid) {
    auto fresh = std::make_unique<OfProcess>(pid);
    fresh->of_parent = slot;
    if (this_process.compare_exchange_strong(slot, fresh.get())) return *fresh.release();
  }
  return *slot;
}

}  // namespace

std::shared_ptr<Watchdog> Watchdog::of_process() {
  OfProcess& slot = slot_of_process();
  std::lock_guard lock(slot.mutex);
  std::shared_ptr<Watchdog> dog = slot.dog.lock();
  if (!dog) slot.dog = dog = std::make_shared<Watchdog>();
  return dog;
}

Watchdog::~Watchdog() {
  if (!thread_.joinable()) return;
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

Watchdog::Watch::Watch(std::function<std::int64_t()> ring) : ring_(std::move(ring)) {
  std::lock_guard lock(dog_->mutex_);
  dog_->watches_.push_back(this);
  if (!dog_->thread_.joinable()) dog_->thread_ = std::thread([dog = dog_.get()] { dog->run(); });
}

Watchdog::Watch::~Watch() {
  std::lock_guard lock(dog_->mutex_);
  std::erase(dog_->watches_, this);
}

void Watchdog::Watch::set(std::int64_t due_ns) {
  due_ns_.store(due_ns);
  dog_->wake_before(due_ns);
}

void Watchdog::Watch::set_sooner(std::int64_t due_ns) {
  std::int64_t known = due_ns_.load();
  while (due_ns < known)
    if (due_ns_.compare_exchange_weak(known, due_ns)) return dog_->wake_before(due_ns);
}

void Watchdog::wake_before(std::int64_t due_ns) {
  if (due_ns >= sleeps_until_ns_.load()) return;
  std::lock_guard lock(mutex_);  // the thread is asleep, or has yet to look
  wake_.notify_all();
}

std::int64_t Watchdog::soonest() const {
  std::int64_t due = never;
  for (const Watch* w : watches_) due = std::min(due, w->due_ns_.load());
  return due;
}

void Watchdog::run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const std::int64_t now = system_clock().monotonic_ns();
    for (Watch* w : watches_) {
      std::int64_t due = w->due_ns_.load();
      // If its user sets another time meanwhile, that one counts.
      if (due <= now) w->due_ns_.compare_exchange_strong(due, w->ring_());
    }
    const std::int64_t first = soonest();
    sleeps_until_ns_.store(first);
    const std::int64_t due = std::min(first, soonest());  // a time set before that store has not woken this thread
    sleeps_until_ns_.store(due);
    if (due == never) {
      wake_.wait(lock);
    } else if (const std::int64_t left = due - system_clock().monotonic_ns(); left > 0) {
      wake_.wait_for(lock, std::chrono::nanoseconds(left));
    }
  }
}

}  // namespace rille::host
