// The reach of a refused create call: which other offers would be refused as well. Decided by the provider's error
// code, else by the error's kind. Pure; any thread.
#pragma once

#include "runtime/core/base/error.hpp"

namespace rille::provider {

enum class Reach {
  offer,    // this offer only
  larger,   // offers of this GPU in this region with as many GPUs or more: a quota counts vCPUs or GPUs
  region,   // all offers of this region
  account,  // all offers of the provider
};

// `refusal`: an error of a create call for which is_definitive() (outcome.hpp) is true.
Reach reach_of(const Error& refusal);

}  // namespace rille::provider
