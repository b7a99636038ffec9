// Work: the operations that one run, or one call into a loaded script, has started on devices, and how they are ended.
// Requests to end are counted. An operation remembers the count at the time it was recorded, and is skipped or broken
// off once the count is higher. Threads: any.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "runtime/core/base/error.hpp"

namespace rille {

class Work {
 public:
  // Called on a device's thread when it begins and ends to compute operations of this work on the CPU.
  struct Meter {
    virtual ~Meter() = default;
    virtual void begins() = 0;
    virtual void ends() = 0;
  };

  Work() = default;
  Work(const Work&) = delete;

  // Ends the operations recorded so far. Tensors that they would have made get this error (`why`, with its kind and
  // code) instead of a value. A tensor that a skipped operation would have changed in place keeps its value; a tensor
  // that an operation has half written gets the error. Operations recorded afterwards run.
  void end(const Error& why);
  std::uint64_t ends() const { return __atomic_load_n(&ends_, __ATOMIC_RELAXED); }  // number of requests so far
  const std::uint64_t* ends_place() const { return &ends_; }                        // for atomic reads
  bool ended_since(std::uint64_t before) const { return ends() != before; }
  std::shared_ptr<const Error> why() const;  // of the last request

  // Set both before the first operation. `promptly`: an end need not wait for a long call of a library, because such a
  // call is computed in parts, which may change the last bits of its result.
  void set_promptly(bool on) { promptly_ = on; }
  bool promptly() const { return promptly_; }
  void set_meter(std::shared_ptr<Meter> meter) { meter_ = std::move(meter); }
  const std::shared_ptr<Meter>& meter() const { return meter_; }  // may be null

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Error> why_;
  std::shared_ptr<Meter> meter_;
  std::uint64_t ends_ = 0;  // accessed atomically; a plain integer, because kernels read it through a pointer
  bool promptly_ = false;
};

}  // namespace rille
