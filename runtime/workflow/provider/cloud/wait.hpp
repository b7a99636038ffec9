// For clouds that answer a create with an operation whose outcome comes later, and that name resources by themselves.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/core/loop/loop.hpp"

namespace rille::provider::cloud {

// How often, and how long, the outcome of an operation is asked for: soon at first, later every few seconds. Loop
// thread only.
class Patience {
 public:
  Patience(Loop& loop, std::int64_t limit_ms)
      : loop_(loop), limit_ms_(limit_ms), ends_ns_(loop.clock().monotonic_ns() + limit_ms * 1'000'000) {}
  // Until the next look. network: the time is over and nobody knows what became of `what`; cancelled.
  Async<> next(std::string what, CancelToken token);

 private:
  Loop& loop_;
  std::int64_t limit_ms_, ends_ns_, wait_ms_ = 100;
};

// A name that the cloud takes, from a tag: a-z, 0-9 and "-", from a letter on, at most `length_max`. One tag gives one
// name, and two tags two names: where the tag itself does not fit, a digest of it ends the name. Any thread.
std::string resource_name(const std::string& tag, std::size_t length_max);

}  // namespace rille::provider::cloud
