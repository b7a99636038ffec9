// Messages: the durable operations between runs: signals, pool permits, and child runs. Loop thread only.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/core/base/guest.hpp"
#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/engine/pools.hpp"

namespace rille::engine {

// A run that a script starts and waits for.
struct ChildSpec {
  ChildSpec() = default;  // not an aggregate: see loop/task.hpp
  std::string script;     // a file, relative to the folder of the parent's script
  Value args;
  std::function<Result<>(const std::string& path)> may_read;  // called with the script's full path; null: allowed
  std::string id;  // the child's run id; callers that give one id share one child; "": derived from the parent's id
};

class Messages {
 public:
  virtual ~Messages() = default;
  virtual Async<Value> signal(FiberId fiber, std::string name, std::int64_t timeout_ms, Value otherwise,
                              std::string source) = 0;

  // Waits for a permit of the pool and returns the permit's key, which the fiber later gives to pool_leave.
  virtual Async<std::string> pool_enter(FiberId fiber, PoolSpec pool, std::string source) = 0;
  virtual void pool_leave(FiberId fiber, const std::string& pool, const std::string& permit) = 0;

  // Runs another script as a separate run, the child, with its own record, leases and budget. If the fiber is
  // cancelled, the child is cancelled too, and the fiber waits until the child has ended. Returns the child's result,
  // or an error whose cause is the child's error.
  virtual Async<Value> child(FiberId fiber, ChildSpec spec, std::string source) = 0;
};

}  // namespace rille::engine
