// Alarm: calls back on a separate thread after a given time. For checks that must run while Lua computes and the loop
// does not turn. Of several times that were set, only the soonest counts. Any thread may call set(); the callback must
// return quickly.
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
  ~Alarm();  // waits until no callback is running
  void set(std::int64_t ms);

 private:
  void watch();

  std::function<void()> ring_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable wake_;
  std::int64_t due_ms_ = INT64_MAX;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace rille::host
