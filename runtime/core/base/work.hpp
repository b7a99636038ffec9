// Work: what one run, or one call into a loaded script, has asked of devices so far, and how that is ended. Each
// request to end it has a number; an operation remembers how many requests there were when it was recorded, and is
// skipped or broken off once there are more. Threads: any.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "runtime/core/base/error.hpp"

namespace rille {

class Work {
 public:
  // Told on a device's thread when it begins and ends to compute operations of this work on the CPU.
  struct Meter {
    virtual ~Meter() = default;
    virtual void begins() = 0;
    virtual void ends() = 0;
  };

  Work() = default;
  Work(const Work&) = delete;

  // Ends what was recorded before now. Tensors that it would have made have this error instead of a value (`why`, with
  // its kind and code); a tensor that a skipped operation would have changed in place keeps its value, and one that an
  // operation has half written has the error. What is recorded afterwards runs.
  void end(const Error& why);
  std::uint64_t ends() const { return __atomic_load_n(&ends_, __ATOMIC_RELAXED); }  // requests so far
  const std::uint64_t* ends_place() const { return &ends_; }                        // for atomic reads
  bool ended_since(std::uint64_t before) const { return ends() != before; }
  std::shared_ptr<const Error> why() const;  // of the last request

  // Set both before the first operation. `promptly`: an end must not wait for one call of a library that takes long, so
  // such a call is computed in parts, which may change the last bits of its result.
  void set_promptly(bool on) { promptly_ = on; }
  bool promptly() const { return promptly_; }
  void set_meter(std::shared_ptr<Meter> meter) { meter_ = std::move(meter); }
  const std::shared_ptr<Meter>& meter() const { return meter_; }  // may be null

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Error> why_;
  std::shared_ptr<Meter> meter_;
  std::uint64_t ends_ = 0;  // atomic; plain because kernels read it
  bool promptly_ = false;
};

}  // namespace rille
