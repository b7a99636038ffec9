// LuaHost: runs Lua code as the Guest of one engine::Run. It owns the Lua state and the fibers' coroutines; the Run
// owns what is durable. A host serves one Run: bind_run, then execute, and destroy the host before the Run.
// Destroyed while fibers still wait, it drops what they wait for.
//
// Workflow rules (Rules::workflow) hold in durable runs outside of step bodies: no io, os, ffi, debug; deterministic
// pairs, next, math.random and tostring. Rules::open is for sessions and agents: the same words, with io and os.
//
// JIT: chunks of users run interpreted unless options.jit or a first-lines comment `-- rille: jit` says otherwise,
// since a hook cannot interrupt compiled code; Rille's own Lua is always compiled.
//
// Interruption: arm_interrupt() may be called from any thread and from a signal handler. At the next instruction of
// interpreted Lua the host calls options.on_interrupt (which may cancel the run); a fiber that the Run says is
// cancelled then raises that reason at every instruction of script code until its scope has caught it and cleans up.
// Everything else: loop thread only.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "bindings/host/alarm.hpp"
#include "bindings/host/await.hpp"
#include "bindings/host/bind.hpp"
#include "bindings/host/captured.hpp"
#include "bindings/host/codec.hpp"
#include "bindings/host/object.hpp"
#include "bindings/host/random.hpp"
#include "bindings/host/state.hpp"
#include "runtime/workflow/engine/run.hpp"

namespace rille::host {

enum class Rules { workflow, open };
// In a rehearsal no effect may happen that cannot be repeated: `sim` of a step stands for its body. A plan takes nil
// where nothing is declared, a simulation wants it declared.
enum class Rehearsal { no, simulate, plan };

struct HostOptions {
  std::size_t memory_limit_bytes = 0;
  Rules rules = Rules::workflow;
  Rehearsal rehearsal = Rehearsal::no;
  bool jit = false;              // compile the users' chunks, too
  bool full_tracebacks = false;  // show Rille's own frames (RILLE_TRACE=1)
  // a fiber that runs longer without suspending fails with timeout; 0: no limit
  std::int64_t slice_ms = 0;
  std::string script_directory;        // where `require "x"` looks for x.lua; "": only embedded modules
  std::function<void()> on_interrupt;  // see above
  Value last_checkpoint;               // rille.last_checkpoint: what an earlier attempt of this call published
  // On an agent: when the machine will be taken away, in wall time (0: not foreseen), and whether another waits for it.
  std::function<std::pair<std::int64_t, bool>()> preempting;
  std::vector<lua_CFunction> open;  // called with the `rille` table at index 1, to add verbs and classes
};

// One coroutine that the engine knows.
struct Fiber {
  FiberId id = 0;
  lua_State* L = nullptr;
  int anchor = 0;  // registry reference of L
  FunctionRef function = 0;
  std::uint64_t suspension = 0;   // counts awaits; a completion for an older one is dropped
  bool waiting = false;           // suspended in await
  bool engine_wait = false;       // ..in an operation that the engine resolves on cancel
  int refused = 0;                // waits, because it is cancelled
  bool starting = false;          // inside await, before the yield
  lua_State* awaiting = nullptr;  // the coroutine that called await
  int ready = -1;                 // results pushed while starting
  std::string step;               // the step whose body is running, or ""
  Random random;
  struct Plain {                       // that step, when it goes the short way (Run::plain_begin)
    bool runs = false, waits = false;  // its body does; its outcome is on the way to the disk
    Random outer;                      // the fiber's generator, put aside
    Captured before;
    Value kept;  // the journal's copy of a table
  } plain;
};

class LuaHost final : public Guest {
 public:
  static Result<std::unique_ptr<LuaHost>> create(Loop& loop, HostOptions options);
  ~LuaHost() override;
  void bind_run(engine::Run& run) { run_ = &run; }

  // Compiles a script (text only). invalid: syntax, with "file:line:". The name is
  // shown in tracebacks ("=-e" as "-e").
  Result<FunctionRef> load(const std::string& name, const std::string& source);
  // Loads `path`, pinned by the run under that name, as its main script.
  Result<FunctionRef> load_file(const std::string& path);
  // A function that was shipped here (see ship.hpp) with its arguments.
  Result<FunctionRef> load_shipped(const Value& payload);

  // Guest
  void start(FiberId id, FunctionRef function, const Value& argument) override;
  void cancel(FiberId id, const Error& reason) override;
  std::string where(FiberId id) const override;
  void plain_done(FiberId id, const Error* failure) override;

  void arm_interrupt() noexcept;  // any thread, signal-safe
  // Has the Run look at its clock after so many milliseconds, also while Lua computes. -1: no need.
  void look_later(std::int64_t ms);

  // For bindings
  static LuaHost& of(lua_State* L) { return *static_cast<LuaHost*>(State::of(L).owner); }
  lua_State* lua() const { return state_->lua(); }
  State& state() { return *state_; }
  Loop& loop() { return loop_; }
  engine::Run& run() { return *run_; }
  bool has_run() const { return run_ != nullptr; }
  const HostOptions& options() const { return options_; }
  Fiber* current() { return current_; }  // null outside of a fiber
  Fiber* find(FiberId id);
  Completion completion(Fiber& fiber);  // of its present suspension
  // io, os and other effects are allowed here and now.
  bool effects_allowed() const { return options_.rules == Rules::open || (current_ && !current_->step.empty()); }
  FunctionRef keep_function(lua_State* L, int index);  // until a fiber that runs it has ended
  // Marks a child whose `cancelled` end is wanted (handle:cancel, the losers of a race): it counts as ended well.
  void dismiss(FiberId child);
  // A scope or step has caught what was raised: a time slice begins anew, so that cleanup can run.
  void caught();
  // Compiles source into the users' environment and leaves the function on L's stack. Applies the JIT policy.
  Result<> compile(lua_State* L, std::string_view source, const std::string& chunk_name, bool ours);
  struct Chunk {
    std::string source;
    int function = 0;
  };  // by chunk name ("@train.lua")
  const std::map<std::string, Chunk>& chunks() const { return chunks_; }
  Result<std::string> module_source(const std::string& name);         // pinned; invalid: there is none
  std::map<std::string, std::string>& modules() { return modules_; }  // pinned sources of the users' modules
  void print(std::string_view text);
  detail::Driver::Node& drivers() { return drivers_; }

 private:
  friend struct AwaitAccess;
  LuaHost(Loop& loop, HostOptions options);
  Result<> open_libraries();
  void resume(Fiber& fiber, int values);
  void end_fiber(Fiber& fiber, int status);
  void refused(Fiber& fiber);  // a wait, because it is cancelled
  static void hook(lua_State* L, lua_Debug* ar);
  struct Watchdog;

  Loop& loop_;
  HostOptions options_;
  engine::Run* run_ = nullptr;
  std::unique_ptr<State> state_;
  std::map<FiberId, std::unique_ptr<Fiber>> fibers_;
  detail::Driver::Node drivers_;  // a ring
  std::set<FiberId> dismissed_;
  std::map<std::string, Chunk> chunks_;
  std::map<std::string, std::string> modules_;
  Fiber* current_ = nullptr;
  std::atomic<bool> interrupt_{false};
  bool grace_given_ = false;  // to a fiber that computes while a cancel waits
  std::unique_ptr<Watchdog> watchdog_;
  std::atomic<bool> look_{false};  // the alarm has rung
  std::unique_ptr<Alarm> alarm_;
  std::shared_ptr<LuaHost*> self_;  // *self_ is null once the host is gone: late completions look here
};

}  // namespace rille::host
