// `rille rm`: removes an ended run from the list, with its record, its files and its child runs. Its costs stay: the
// leases and the audit trail.
#pragma once

#include <string>

#include "runtime/workflow/engine/engine.hpp"

namespace rille::engine {

// state: it has not ended, something of it is still rented, or it was started by another run. Loop thread.
Async<> remove_run(Engine& engine, std::string id);

}  // namespace rille::engine
