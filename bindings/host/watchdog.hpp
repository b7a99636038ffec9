// Watchdog: a thread that interrupts a fiber which runs longer than its time slice without suspending. Private to
// bindings/host; used only if HostOptions::slice_ms is not 0.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "bindings/host/host.hpp"
#include "runtime/core/base/time.hpp"

namespace rille::host {

struct LuaHost::Watchdog {
  Watchdog(LuaHost& host, std::int64_t slice_ms) : host_(host), slice_ms_(slice_ms), thread_([this] { watch(); }) {}
  ~Watchdog() {
    {
      std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    thread_.join();
  }
  void begin() {
    overrun_ = false;
    began_ = now_ms();
  }
  void end() {
    began_ = 0;
    overrun_ = false;
  }
  bool overrun() const { return overrun_; }
  Error error() const {
    return make_error(
        ErrorKind::timeout,
        "the script ran longer than its time slice of " + format_duration_ms(slice_ms_) + " without waiting",
        "split the work, move it to an instance with box:call, or raise the limit slice_ms");
  }

 private:
  static std::int64_t now_ms() { return system_clock().monotonic_ns() / 1'000'000 + 1; }
  void watch() {
    std::unique_lock lock(mutex_);
    while (!stop_) {
      wake_.wait_for(lock, std::chrono::milliseconds(std::max<std::int64_t>(1, slice_ms_ / 4)));
      std::int64_t began = began_;
      if (!stop_ && began && now_ms() - began > slice_ms_ && !overrun_.exchange(true))
        // LuaJIT documents lua_sethook as safe from another thread
        lua_sethook(host_.lua(), &LuaHost::hook, LUA_MASKCOUNT, 1);
    }
  }

  LuaHost& host_;
  std::int64_t slice_ms_;
  std::atomic<std::int64_t> began_{0};
  std::atomic<bool> overrun_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace rille::host
