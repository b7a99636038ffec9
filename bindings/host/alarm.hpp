// Alarm: calls back from a thread of its own after a time. For code that must be looked at while the loop does not
// turn, since Lua computes. One time is set at once: of several, the soonest. Any thread may set it; the callback must
// be quick.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

namespace rille::host {

class Alarm {
 public:
  explicit Alarm(std::function<void()> ring) : ring_(std::move(ring)), thread_([this] { watch(); }) {}
  ~Alarm();  // no call is under way after it
  void set(std::int64_t ms);

 private:
  void watch();

  std::function<void()> ring_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::int64_t due_ms_ = INT64_MAX;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace rille::host
