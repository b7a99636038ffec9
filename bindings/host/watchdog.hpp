// Watchdog: a thread that interrupts a fiber which runs longer than its time slice without suspending. Private to
// bindings/host; used only if HostOptions::slice_ms is not 0.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace rille::host {

class Watchdog {
 public:
  static constexpr std::int64_t never = INT64_MAX;
  // The one of this process. A forked child gets its own, since threads do not survive a fork.
  static std::shared_ptr<Watchdog> of_process();
  ~Watchdog();

  // One callback of the watchdog. Destroy it before what the callback uses; no callback is running afterwards.
  class Watch {
   public:
    // `ring` runs on the watchdog's thread and must be quick; it returns when to ring again, or `never`.
    explicit Watch(std::function<std::int64_t()> ring);
    ~Watch();
    Watch(const Watch&) = delete;
    // Any thread. Times are of the system's monotonic clock. Costs a system call only if the thread sleeps for longer.
    void set(std::int64_t due_ns);
    void set_sooner(std::int64_t due_ns);
    void clear() { due_ns_.store(never, std::memory_order_relaxed); }

   private:
    friend class Watchdog;
    std::shared_ptr<Watchdog> dog_ = of_process();
    std::function<std::int64_t()> ring_;
    std::atomic<std::int64_t> due_ns_{never};
  };

 private:
  void run();
  std::int64_t soonest() const;
  void wake_before(std::int64_t due_ns);

  std::mutex mutex_;  // guards watches_, stop_, and every call of a ring_
  std::condition_variable wake_;
  std::vector<Watch*> watches_;
  bool stop_ = false;
  std::atomic<std::int64_t> sleeps_until_ns_{never};
  std::thread thread_;
};

}  // namespace rille::host
