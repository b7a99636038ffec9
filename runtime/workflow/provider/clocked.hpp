// Clocked: a provider whose answers say what time it is there. An instant that a machine shall end at is read by its
// provider's clock, or by the machine's, and not by ours.
#pragma once

#include <cstdint>

#include "runtime/workflow/provider/provider.hpp"

namespace rille::provider {

class Clocked {
 public:
  virtual ~Clocked() = default;
  // How far that clock is ahead of ours, by its last answer; 0: less than two seconds, or it was not asked yet.
  virtual std::int64_t skew_us() const = 0;
};

inline std::int64_t skew_of(const Provider* provider) {
  const Clocked* const clocked = dynamic_cast<const Clocked*>(provider);
  return clocked ? clocked->skew_us() : 0;
}

}  // namespace rille::provider
