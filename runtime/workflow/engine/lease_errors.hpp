// The errors that the durable verbs of leases share. Private to runtime/workflow/engine; defined in instances.cpp.
#pragma once

#include "runtime/workflow/engine/run.hpp"

namespace rille::engine {

struct RunConfig;
Error no_leases(const RunConfig& config);  // the run can rent nothing
// Combines two errors into one: of a failed rent, and of the failed release of the rent's lease.
Error unsettled(Error rent, Error release);

}  // namespace rille::engine
