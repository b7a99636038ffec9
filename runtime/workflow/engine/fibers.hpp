// Fibers: a run's fibers and scopes, as used by the guest that runs their code. Loop thread only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/guest.hpp"
#include "runtime/core/loop/loop.hpp"

namespace rille::engine {

using ScopeId = std::uint64_t;

class Fibers : public FiberSink {
 public:
  virtual const Error* cancelled(FiberId fiber) const = 0;  // why it must unwind now, or null
  virtual std::uint64_t seed(FiberId fiber) const = 0;      // from run id and fiber path
  virtual std::string path(FiberId fiber) const = 0;        // "main/worker#1"

  // Each fiber has a root scope, a child of the scope it was spawned in. A guest may settle, clean up and release that
  // scope itself before fiber_done, as with scope_enter's (so that the body's defers run in its fiber); the engine does
  // whatever it leaves undone before the fiber counts as ended.
  virtual ScopeId root_scope(FiberId fiber) const = 0;
  virtual Result<FiberId> spawn(FiberId parent, std::string name, FunctionRef function, Value argument) = 0;
  // returns when the child has ended, with its error if it failed
  virtual Async<> join(FiberId self, FiberId child) = 0;
  // The index of the first to end. That may depend on unrecorded facts (how long a release takes), so if the script
  // acts on it, it is a journal entry.
  virtual Async<std::size_t> join_any(FiberId self, std::vector<FiberId> children, bool journaled = true) = 0;
  virtual void cancel_fiber(FiberId child, Error reason) = 0;
  virtual bool ended(FiberId fiber) const = 0;

  // Order: scope_enter; body; scope_settle (cancels the children if the body failed, waits for them, returns the first
  // error of a child); the guest's defers; scope_release (releases leases in reverse order, except `kept`, which move
  // to the parent scope); scope_leave. From scope_settle on, the scope is shielded from cancellation.
  virtual ScopeId scope_enter(FiberId fiber, std::string name) = 0;
  virtual Async<> scope_settle(FiberId fiber, ScopeId scope, std::optional<Error> failure) = 0;
  virtual Async<> scope_release(FiberId fiber, ScopeId scope, std::vector<std::string> kept) = 0;
  virtual void scope_leave(FiberId fiber, ScopeId scope) = 0;

  // One entry at the prompt: a scope that can be cancelled alone but owns nothing. Leases and fibers created in it
  // belong to the session. Left by scope_leave.
  virtual ScopeId entry_enter(FiberId fiber) = 0;
  virtual void cancel_scope(ScopeId scope, Error reason) = 0;
};

}  // namespace rille::engine
