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
  virtual const Error* cancelled(FiberId fiber) const = 0;  // why the fiber must unwind now; null: not cancelled
  virtual std::uint64_t seed(FiberId fiber) const = 0;      // random seed, derived from run id and fiber path
  virtual std::string path(FiberId fiber) const = 0;        // such as "main/worker#1"

  // The guest has suspended a fiber's code in the middle of a computation. Until release_fibers() no other fiber
  // continues, so the order of fibers is the same as if the code had not been suspended.
  virtual void hold_fibers() = 0;
  virtual void release_fibers() = 0;

  // Each fiber has a root scope, a child of the scope it was spawned in. Before fiber_done, a guest may settle, clean
  // up and release the root scope like any scope from scope_enter, so that the body's defers run in the fiber. The
  // engine does whatever the guest leaves undone before the fiber counts as ended.
  virtual ScopeId root_scope(FiberId fiber) const = 0;
  virtual Result<FiberId> spawn(FiberId parent, std::string name, FunctionRef function, Value argument) = 0;
  // Returns when the child fiber has ended. If the child failed, fails with the child's error.
  virtual Async<> join(FiberId self, FiberId child) = 0;
  // Waits until a child ends and returns its index. Which child ends first may depend on unrecorded facts (how long a
  // release takes): pass `journaled`, which records the index, unless the script cannot act on it.
  virtual Async<std::size_t> join_any(FiberId self, std::vector<FiberId> children, bool journaled = true) = 0;
  virtual void cancel_fiber(FiberId child, Error reason) = 0;
  virtual bool ended(FiberId fiber) const = 0;

  // A guest calls these in order: scope_enter; the body; scope_settle (cancels the children if the body failed, waits
  // for them, returns the first error of a child); the guest's defers; scope_release (releases the scope's leases in
  // reverse order, except those in `kept`, which move to the parent scope); scope_leave. Once scope_settle has
  // returned, the scope can no longer be cancelled.
  virtual ScopeId scope_enter(FiberId fiber, std::string name) = 0;
  virtual Async<> scope_settle(FiberId fiber, ScopeId scope, std::optional<Error> failure) = 0;
  virtual Async<> scope_release(FiberId fiber, ScopeId scope, std::vector<std::string> kept) = 0;
  virtual void scope_leave(FiberId fiber, ScopeId scope) = 0;

  // Opens a scope for one input at the REPL's prompt. The scope can be cancelled alone but owns nothing: leases and
  // fibers created in it belong to the session. scope_leave closes it.
  virtual ScopeId entry_enter(FiberId fiber) = 0;
  virtual void cancel_scope(ScopeId scope, Error reason) = 0;
};

}  // namespace rille::engine
