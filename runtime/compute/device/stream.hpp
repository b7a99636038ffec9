// Stream: a queue of work on a device, beside the device's default stream. Event: a position in a stream, for which the
// device can wait and whose time it records. Both are made and used by an Executor. The CPU has a single queue, so a
// Stream of the CPU is only a number.
//
// Threads: Streams and Events may be destroyed on any thread, even while work is running.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/core/base/result.hpp"

namespace rille::device {

class Stream {
 public:
  Stream() : number_(++last_) {}
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  std::uint64_t number() const { return number_; }  // counts from 1; unique in this process

 private:
  static inline std::atomic<std::uint64_t> last_{0};
  std::uint64_t number_;
};

class Event {
 public:
  virtual ~Event() = default;
  // Whether all work before the event has run. Any thread. Error of kind device: the device is lost.
  virtual Result<bool> done() = 0;
  // Nanoseconds from `earlier` to this event. Both events must be timed and done. Any thread.
  virtual Result<std::int64_t> ns_since(Event& earlier) = 0;
};

}  // namespace rille::device
