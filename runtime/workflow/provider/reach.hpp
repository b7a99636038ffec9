// How far a refusal reaches: whether the next offer of that provider, in that region, can do any better. By the code
// that the provider gave, else by the kind. Pure; any thread.
#pragma once

#include "runtime/core/base/error.hpp"

namespace rille::provider {

enum class Reach {
  offer,    // this one only
  larger,   // those of that GPU in that region which are as large or larger: a quota counts vCPUs or GPUs
  region,   // all that the provider has in that region (a driver knows one zone of each)
  account,  // all that the provider has
};

// Of a create call that was refused for good.
Reach reach_of(const Error& refusal);

}  // namespace rille::provider
