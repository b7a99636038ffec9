// Helpers for clouds that answer a create call with an asynchronous operation, and that identify resources by names.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/loop/loop.hpp"

namespace rille::provider::cloud {

// The polling interval and time limit of an operation: short waits first, later every few seconds. Loop thread only.
class Patience {
 public:
  Patience(Loop& loop, std::int64_t limit_ms)
      : loop_(loop), limit_ms_(limit_ms), ends_ns_(loop.clock().monotonic_ns() + limit_ms * 1'000'000) {}
  // Waits until the next poll. Error network: the time limit is reached, so the outcome of `what` is unknown.
  Async<> next(std::string what, CancelToken token);

 private:
  Loop& loop_;
  std::int64_t limit_ms_, ends_ns_, wait_ms_ = 100;
};

// A valid resource name for a tag: a-z, 0-9 and "-", first a letter, at most `length_max` long. Names are unique per
// tag: a tag that does not fit is shortened and gets a digest. Any thread.
std::string resource_name(const std::string& tag, std::size_t length_max);

}  // namespace rille::provider::cloud
