// Stream: an order of work on a device, beside the device's own. Event: a position in an order, for which the device
// can wait and whose time it records. Made and used by an Executor. The CPU has a single order, so a Stream there is
// only a name.
//
// Threads: destroyed on any thread, even while work is running.
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
  std::uint64_t number() const { return number_; }  // from 1; unique in this process

 private:
  static inline std::atomic<std::uint64_t> last_{0};
  std::uint64_t number_;
};

class Event {
 public:
  virtual ~Event() = default;
  // Whether all work before it has run. Any thread. device: the device is lost.
  virtual Result<bool> done() = 0;
  // Requires two timed events that are done. Any thread.
  virtual Result<std::int64_t> ns_since(Event& earlier) = 0;
};

}  // namespace rille::device
