// Run: one execution of a script, durable by re-execution. The engine keeps fibers as records (path, ordinal, scope,
// cancellation), answers durable operations from the journal on resume, and lets live effects begin only after every
// recorded completion has been delivered in its recorded order. Code runs in a Guest; the guest's fibers call the
// operations of Run's base interfaces, whose first parameter is the calling fiber.
//
// Modes: `durable` journals everything; `session` (the REPL) journals leases only and is never replayed; `ephemeral`
// (code on an agent) has no journal: steps run once and sleep just sleeps.
// Loop thread only. Once a fiber's scope is cancelled, the fiber's operations fail at every suspension point with the
// reason of the cancel, until the scope has unwound; operations in a shielded scope (cleanup) do not fail. An operation
// that differs from the record fails with `divergence` before it has any effect.
#pragma once

#include <memory>
#include <string>

#include "runtime/workflow/engine/fibers.hpp"
#include "runtime/workflow/engine/instances.hpp"
#include "runtime/workflow/engine/messages.hpp"
#include "runtime/workflow/engine/run_control.hpp"
#include "runtime/workflow/engine/steps.hpp"

namespace rille::engine {

class Run : public RunControl, public Fibers, public Steps, public Messages, public Instances {};

// A run for code on an agent: no journal, no leases.
std::unique_ptr<Run> make_ephemeral_run(Loop& loop, std::string name, std::string directory, Value args,
                                        RunHooks hooks);
// The same for a script whose functions the host program calls: each call is a fiber that the main fiber spawns, and a
// failed one ends no other fiber.
std::unique_ptr<Run> make_script_run(Loop& loop, std::string name, Value args, RunHooks hooks);

}  // namespace rille::engine
