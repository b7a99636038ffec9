// The worker of one call on an agent: takes the shipped function from the agent's channel, runs it in an ephemeral run
// with the agent's rules (JIT on, io and os open), and gives the result back. Progress goes to the channel; so do
// events {event = "checkpoint", ...}; what the code prints is the process's standard output, which is the call's log.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bindings/host/lua.hpp"
#include "runtime/core/loop/loop.hpp"

namespace rille::lua {

struct WorkerOptions {
  std::string directory, call_key;  // as the agent gave them: --dir D --call KEY
  bool standard_line = false;       // --line standard: in a container
  bool full_tracebacks = false;
};

// The exit code of the process: 0 when a result, good or bad, has reached the agent.
Async<int> run_worker(Loop& loop, WorkerOptions options);

}  // namespace rille::lua
