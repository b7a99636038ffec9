// Guest: the interface between the engine and a scripting host. The engine owns fibers as records and decides when each
// resumes; the guest owns the code that runs in them. LuaJIT is one guest (bindings/host); crash tests use C++ guests.
// All calls happen on the loop's thread. The engine never calls into a guest from inside one of that guest's calls:
// it queues the work and runs it afterwards.
#pragma once

#include <cstdint>

#include "runtime/core/base/result.hpp"
#include "runtime/core/base/value.hpp"

namespace rille {

using FiberId = std::uint64_t;      // unique within one run; 1 is the main fiber
using FunctionRef = std::uint64_t;  // an opaque handle of a function that the guest holds

class Guest {
 public:
  virtual ~Guest() = default;

  // Runs `function(argument)` as fiber `id` until it first suspends or ends. The guest reports the end by
  // FiberSink::fiber_done and keeps the function alive until then.
  virtual void start(FiberId id, FunctionRef function, const Value& argument) = 0;

  // Makes the fiber raise `reason` at every suspension point from now on, until it has unwound. Also interrupts code
  // that never suspends. The engine itself resolves the operation that the fiber is waiting for.
  virtual void cancel(FiberId id, const Error& reason) = 0;

  // The run was cancelled: operations that its fibers have started on devices need not be computed any more. Operations
  // that they start afterwards (cleanup) are computed. May be called at any time, also from inside the guest's own
  // calls: it only marks work.
  virtual void drop_work(const Error& /*reason*/) {}

  // The plain step that the fiber waits for is now in the journal, or with `failure` could not be written there. Only
  // for guests that call Run::plain_end.
  virtual void plain_done(FiberId, const Error* /*failure*/) {}

  // The fiber's current source position, e.g. "train.lua:12", for journal entries and divergence messages.
  virtual std::string where(FiberId id) const = 0;
};

// Where a guest reports to the engine.
class FiberSink {
 public:
  virtual ~FiberSink() = default;
  virtual void fiber_done(FiberId id, Result<Value> result) = 0;
};

}  // namespace rille
