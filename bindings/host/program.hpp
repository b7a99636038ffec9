// A Lua script as the Program of a child run (engine::Run::child), with a separate Lua state.
#pragma once

#include "bindings/host/host.hpp"
#include "bindings/host/interrupter.hpp"

namespace rille::host {

// `options` come from the parent's host, and with them the grants, which are stored with the child as well; `require`
// looks in the script's folder. `limits`: of leases and money. `interrupter` and `run` must outlive the program. Error
// `quota`: `interrupter` has no free slot.
Result<std::unique_ptr<engine::Program>> load_program(Loop& loop, HostOptions options, Interrupter& interrupter,
                                                      engine::Run& run, const std::string& script,
                                                      engine::RunLimits limits = {});

// Adds the memory, disk and network limits in the host's options to `limits`.
engine::RunLimits shared_limits(const LuaHost& host, engine::RunLimits limits = {});

// Returns the grants recorded in the run's journal. For a new run, records `given` and returns them. A run with all
// grants has no record and gets all of them again on resume.
Result<Grants> settle_grants(engine::RunControl& run, const Grants& given);

// Returns the spending limit recorded in the run's journal, in millionths of a dollar. If there is none, records
// `given` and returns it; -1 (no limit) is not recorded.
Result<std::int64_t> settle_spend(engine::RunControl& run, std::int64_t given);

// Returns an interrupt handler that calls `interrupt` and also cancels the child run, because the parent cannot pass on
// its cancellation while the child computes.
std::function<void()> interrupt_child(std::function<void()> interrupt, engine::RunControl& parent,
                                      engine::RunControl& child);

}  // namespace rille::host
