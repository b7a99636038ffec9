// The `sim` provider: a cloud that does not exist, under the rules of provider.hpp. Machines, prices and troubles come
// from one seed; time is the loop's, which is meant to be virtual. Calls have latency and fail as Options says.
#pragma once

#include "runtime/workflow/provider/provider.hpp"
#include "runtime/workflow/provider/sim/cloud.hpp"

namespace rille::provider::sim {

// Told before and after the effect of each call ("create", "list", ..): where a process may die. Null: nowhere. False:
// it has died, and the call never returns.
using Gate = std::function<bool(const char* operation, bool done)>;

// The cloud outlives the provider.
std::unique_ptr<Provider> make_provider(Loop& loop, Cloud& cloud, Gate gate = nullptr);

}  // namespace rille::provider::sim
