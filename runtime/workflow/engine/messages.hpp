// Messages: the durable verbs that concern other runs: signals, permits of pools, and runs that this one starts. Loop
// thread only.
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
  std::string script;     // a file, as seen from the folder of the parent's script
  Value args;
  std::string id;  // of whoever asks first; the others get its outcome. "" = made from the parent's
};

class Messages {
 public:
  virtual ~Messages() = default;
  virtual Async<Value> signal(FiberId fiber, std::string name, std::int64_t timeout_ms, Value otherwise,
                              std::string source) = 0;

  // A permit of a pool, for the time until pool_leave, which wants what this gives.
  virtual Async<std::string> pool_enter(FiberId fiber, PoolSpec pool, std::string source) = 0;
  virtual void pool_leave(FiberId fiber, const std::string& pool, const std::string& permit) = 0;

  // Another script as a run of its own: its record, its leases, its budget. Cancelled with the fiber, and waited for
  // even then. Gives its result, or its error as the cause of one.
  virtual Async<Value> child(FiberId fiber, ChildSpec spec, std::string source) = 0;
};

}  // namespace rille::engine
