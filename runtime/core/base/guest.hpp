// Guest: what a scripting host offers the engine. The engine owns fibers as records and decides when each goes on; the
// guest owns the code that runs in them. LuaJIT is one guest (bindings/host); the engine's crash tests use C++ guests.
// All calls happen on the loop's thread. The engine never calls into a guest from inside a call of that guest:
// it queues the work and drains after.
#pragma once

#include <cstdint>

#include "runtime/core/base/result.hpp"
#include "runtime/core/base/value.hpp"

namespace rille {

using FiberId = std::uint64_t;      // unique in one run; 1 is the main fiber
using FunctionRef = std::uint64_t;  // a guest's function; the guest says what it means

class Guest {
 public:
  virtual ~Guest() = default;

  // Runs `function(argument)` as fiber `id` until it first suspends or ends. Its end reaches the engine by
  // FiberSink::fiber_done. The guest keeps the function alive until then.
  virtual void start(FiberId id, FunctionRef function, const Value& argument) = 0;

  // Makes the fiber raise `reason` at each suspension point from now on, until it has unwound (cancellation is
  // level-triggered). If it is running endless code, interrupts it there. The engine also resolves the operation
  // in which it waits.
  virtual void cancel(FiberId id, const Error& reason) = 0;

  // The plain step in which the fiber waits is durable, or cannot be recorded. For guests that call Run::plain_end.
  virtual void plain_done(FiberId, const Error* /*failure*/) {}

  // Where the fiber stands now, e.g. "train.lua:12", for journal entries and divergence messages.
  virtual std::string where(FiberId id) const = 0;
};

// What the engine offers a guest's fibers.
class FiberSink {
 public:
  virtual ~FiberSink() = default;
  virtual void fiber_done(FiberId id, Result<Value> result) = 0;
};

}  // namespace rille
