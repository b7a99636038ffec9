// A Lua script as the Program of a child run (engine::Run::child), with its own Lua state.
#pragma once

#include "bindings/host/host.hpp"
#include "bindings/host/interrupter.hpp"

namespace rille::host {

// `options` come from the parent's host; `require` uses the script's folder. quota: `interrupter` has no free slot.
// interrupter and run outlive the program.
Result<std::unique_ptr<engine::Program>> load_program(Loop& loop, HostOptions options, Interrupter& interrupter,
                                                      engine::Run& run, const std::string& script);

// Returns an interrupt handler that also cancels a child: while the child computes, the parent cannot pass the cancel
// on.
std::function<void()> interrupt_child(std::function<void()> interrupt, engine::RunControl& parent,
                                      engine::RunControl& child);

}  // namespace rille::host
