// Messages: the durable verbs between runs: signals, pool permits, and child runs. Loop thread only.
#pragma once

#include <cstdint>
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
  std::string id;  // shared by all that name it; "" = derived from the parent's
};

class Messages {
 public:
  virtual ~Messages() = default;
  virtual Async<Value> signal(FiberId fiber, std::string name, std::int64_t timeout_ms, Value otherwise,
                              std::string source) = 0;

  // Takes a permit of a pool until pool_leave, which takes the returned key.
  virtual Async<std::string> pool_enter(FiberId fiber, PoolSpec pool, std::string source) = 0;
  virtual void pool_leave(FiberId fiber, const std::string& pool, const std::string& permit) = 0;

  // Runs another script as a separate run with its own record, leases and budget. Cancelled with the fiber, which still
  // waits for its end. Returns its result, or an error with the child's as its cause.
  virtual Async<Value> child(FiberId fiber, ChildSpec spec, std::string source) = 0;
};

}  // namespace rille::engine
