// The reach of a refused create call: which other offers would be refused as well. By the provider's error code, else
// by the error's kind. Pure; any thread.
#pragma once

#include "runtime/core/base/error.hpp"

namespace rille::provider {

enum class Reach {
  offer,    // this offer only
  larger,   // offers of that GPU in that region of the same size or larger: a quota counts vCPUs or GPUs
  region,   // all offers of the region (a driver uses one zone of each)
  account,  // all offers of the provider
};

// `refusal`: a definitive error of a create call.
Reach reach_of(const Error& refusal);

}  // namespace rille::provider
