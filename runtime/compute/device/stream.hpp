// Stream: an order of its own among a device's work, beside the device's own. Event: a place in an order, which the
// device can wait for and whose time it notes. Made and used by an Executor; the CPU has one order for all, so there a
// Stream is a name and no more.
//
// Threads: dropped on any thread, also while work is under way.
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
  std::uint64_t number() const { return number_; }  // from 1 on; no other one of this process has it

 private:
  static inline std::atomic<std::uint64_t> last_{0};
  std::uint64_t number_;
};

class Event {
 public:
  virtual ~Event() = default;
  // Whether what stood before it has run. Any thread. device: the device is lost.
  virtual Result<bool> done() = 0;
  // Of two timed events that are done. Any thread.
  virtual Result<std::int64_t> ns_since(Event& earlier) = 0;
};

}  // namespace rille::device
