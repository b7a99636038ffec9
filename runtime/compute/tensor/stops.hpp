// Stops: how the work of a graph is ended. Each request has a number; work remembers how many requests there were when
// it was recorded, and is skipped once there are more. Threads: any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "kernels/call.hpp"
#include "runtime/core/base/error.hpp"

namespace rille::tensor {

class Stops {
 public:
  std::uint64_t count() const { return __atomic_load_n(&count_, __ATOMIC_RELAXED); }
  bool reached(std::uint64_t asked) const { return count() != asked; }
  kernels::StopSign sign(std::uint64_t asked) const { return {&count_, asked}; }
  void stop(const Error& why);
  std::shared_ptr<const Error> why() const;  // of the latest request

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const Error> why_;
  std::uint64_t count_ = 0;  // atomic; plain because kernels read it
};

}  // namespace rille::tensor
