// Clocked: a provider whose responses contain the provider's time. A machine's expiry is compared with the clock of the
// provider or of the rented machine, so a wrong local clock would shift the expiry.
#pragma once

#include <cstdint>

#include "runtime/workflow/provider/provider.hpp"

namespace rille::provider {

class Clocked {
 public:
  virtual ~Clocked() = default;
  // How far the provider's clock is ahead of ours in its latest response; 0: less than two seconds, or no response yet.
  virtual std::int64_t skew_us() const = 0;
};

inline std::int64_t skew_of(const Provider* provider) {
  const Clocked* const clocked = dynamic_cast<const Clocked*>(provider);
  return clocked ? clocked->skew_us() : 0;
}

}  // namespace rille::provider
