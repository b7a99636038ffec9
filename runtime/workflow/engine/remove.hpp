// `rille rm`: removes an ended run with its record, its files and its child runs. The rows that document the costs
// stay: the run's leases and the audit trail.
#pragma once

#include <string>

#include "runtime/workflow/engine/engine.hpp"

namespace rille::engine {

// Fails with `state` if the run has not ended, still rents something, or was started by another run. Loop thread only.
Async<> remove_run(Engine& engine, std::string id);

}  // namespace rille::engine
