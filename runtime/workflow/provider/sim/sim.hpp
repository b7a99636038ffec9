// The `sim` provider: a simulated cloud that follows the rules of provider.hpp. Machines, prices and faults come from
// one seed; time is the loop's clock, usually a virtual one. Calls have latency and fail as Options says.
#pragma once

#include "runtime/workflow/provider/provider.hpp"
#include "runtime/workflow/provider/sim/cloud.hpp"

namespace rille::provider::sim {

// Called before (done = false) and after (done = true) the effect of each call ("create", "list", ..), so that a test
// can simulate the death of the process at this point. Returns false if the process died: the call then never returns.
using Gate = std::function<bool(const char* operation, bool done)>;

// `cloud` must outlive the provider.
std::unique_ptr<Provider> make_provider(Loop& loop, Cloud& cloud, Gate gate = nullptr);

}  // namespace rille::provider::sim
