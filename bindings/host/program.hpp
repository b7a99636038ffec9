// A Lua script as the Program of a run that another script started (engine::Run::child). Each has a Lua state of its
// own.
#pragma once

#include "bindings/host/host.hpp"
#include "bindings/host/interrupter.hpp"

namespace rille::host {

// `options` are those of the parent's host; the folder for `require` becomes the script's. quota: `interrupter` has no
// slot left. Both outlive the program.
Result<std::unique_ptr<engine::Program>> load_program(Loop& loop, HostOptions options, Interrupter& interrupter,
                                                      engine::Run& run, const std::string& script);

// When a person interrupts and it is the child that computes, the parent cannot come to its turn and pass the cancel
// on; so the child is told here.
std::function<void()> interrupt_child(std::function<void()> interrupt, engine::Run& parent, engine::Run& child);

}  // namespace rille::host
