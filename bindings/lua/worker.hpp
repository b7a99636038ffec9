// The worker process of one agent call. It takes the shipped function from the agent's channel, runs it in an
// ephemeral run with the agent's rules (JIT on, io and os open), and returns the result. Progress and events such as
// {event = "checkpoint", ...} go to the channel. The code's standard output is the call's log.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bindings/host/lua.hpp"
#include "runtime/core/loop/loop.hpp"

namespace rille::lua {

struct WorkerOptions {
  std::string directory, call_key;  // from the agent's command line: --dir D --call KEY
  bool standard_line = false;       // --line standard: used inside a container
  bool full_tracebacks = false;
};

// Returns the process's exit code: 0 once a result, value or error, has reached the agent.
Async<int> run_worker(Loop& loop, WorkerOptions options);

}  // namespace rille::lua
