// LuaHost: runs Lua code as the Guest of one engine::Run. It owns the Lua state and the fibers' coroutines; the Run
// owns the durable state. A host serves one Run: bind_run, then execute; destroy the host before the Run.
// Its destructor drops the work on which fibers still wait.
//
// Workflow rules (Rules::workflow) hold in durable runs outside of step bodies: no io, os, ffi, debug; deterministic
// pairs, next, math.random and tostring. Rules::open is for sessions and agents: the same functions, plus io and os.
//
// JIT: user chunks run interpreted unless options.jit or a comment `-- rille: jit` in the first lines says otherwise,
// since a hook cannot interrupt compiled code; Rille's own Lua is always compiled.
//
// Interruption: arm_interrupt() may be called from any thread and from a signal handler. At the next instruction of
// interpreted Lua the host calls options.on_interrupt (which may cancel the run). If the Run then reports the current
// fiber as cancelled, every instruction of script code raises the reason until a scope of the fiber catches it and
// cleans up. All else: loop thread only.
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
#include "runtime/workflow/engine/fibers.hpp"
#include "runtime/workflow/engine/run_control.hpp"

namespace rille::host {

enum class Rules { workflow, open };
// In a rehearsal no irreversible effect may happen: the `sim` of a step replaces its body. Where no `sim` is declared,
// a plan uses nil and a simulation fails.
enum class Rehearsal { no, simulate, plan };

struct HostOptions {
  std::size_t memory_limit_bytes = 0;
  Rules rules = Rules::workflow;
  Rehearsal rehearsal = Rehearsal::no;
  bool jit = false;              // compile user chunks too
  bool full_tracebacks = false;  // show Rille's own frames (RILLE_TRACE=1)
  // A fiber that runs longer without suspending fails with timeout; 0: no limit.
  std::int64_t slice_ms = 0;
  std::string script_directory;        // `require "x"` looks for x.lua here; "": embedded modules only
  std::function<void()> on_interrupt;  // see above
  Value last_checkpoint;               // rille.last_checkpoint: published by an earlier attempt of this call
  // On an agent: the wall time of the preemption (0: none foreseen), and whether a replacement is waiting.
  std::function<std::pair<std::int64_t, bool>()> preempting;
  std::vector<lua_CFunction> open;  // called with the `rille` table at index 1, to add verbs and classes
};

// A coroutine known to the engine.
struct Fiber {
  FiberId id = 0;
  lua_State* L = nullptr;
  int anchor = 0;  // registry reference of L
  FunctionRef function = 0;
  std::uint64_t suspension = 0;   // counts awaits; a completion for an older one is dropped
  bool waiting = false;           // suspended in await
  bool engine_wait = false;       // ..in an operation that the engine resolves on cancel
  int refused = 0;                // waits refused because the fiber is cancelled
  bool starting = false;          // inside await, before the yield
  lua_State* awaiting = nullptr;  // the coroutine that called await
  int ready = -1;                 // results pushed while starting
  std::string step;               // the step whose body is running, or ""
  Random random;
  struct Plain {                       // state of a step that uses Run::plain_begin
    bool runs = false, waits = false;  // its body is running; its outcome is being recorded
    Random outer;                      // the fiber's generator, saved meanwhile
    Captured before;
    Value kept;  // the journal's copy of a table
  } plain;
};

class LuaHost final : public Guest {
 public:
  static Result<std::unique_ptr<LuaHost>> create(Loop& loop, HostOptions options);
  ~LuaHost() override;
  void bind_run(engine::Run& run);
  // For code that uses no durable verb: what the host itself needs of a run.
  void bind(engine::RunControl& control, engine::Fibers& fibers) { control_ = &control, run_fibers_ = &fibers; }

  // Compiles a script (text only). invalid: a syntax error, with "file:line:". Tracebacks show the name ("=-e" as
  // "-e").
  Result<FunctionRef> load(const std::string& name, const std::string& source);
  // Loads `path` as the main script; the run pins it under that name.
  Result<FunctionRef> load_file(const std::string& path);
  // Loads a function shipped to this process (see ship.hpp) with its arguments.
  Result<FunctionRef> load_shipped(const Value& payload);

  // Guest
  void start(FiberId id, FunctionRef function, const Value& argument) override;
  void cancel(FiberId id, const Error& reason) override;
  std::string where(FiberId id) const override;
  void plain_done(FiberId id, const Error* failure) override;

  void arm_interrupt() noexcept;  // any thread, signal-safe
  // Makes the Run check its clock after `ms`, even while Lua computes. -1: not needed.
  void look_later(std::int64_t ms);

  // For bindings
  static LuaHost& of(lua_State* L) { return *static_cast<LuaHost*>(State::of(L).owner); }
  lua_State* lua() const { return state_->lua(); }
  State& state() { return *state_; }
  Loop& loop() { return loop_; }
  engine::Run& run() { return *run_; }  // after bind_run
  engine::RunControl& control() { return *control_; }
  engine::Fibers& fibers() { return *run_fibers_; }
  bool has_run() const { return control_ != nullptr; }
  const HostOptions& options() const { return options_; }
  Fiber* current() { return current_; }  // null outside of a fiber
  Fiber* find(FiberId id);
  Completion completion(Fiber& fiber);  // of its current suspension
  // Whether io, os and other effects are allowed at this point.
  bool effects_allowed() const { return options_.rules == Rules::open || (current_ && !current_->step.empty()); }
  FunctionRef keep_function(lua_State* L, int index);  // until a fiber that runs it has ended
  // Marks a child whose cancellation is wanted (handle:cancel, the losers of a race): it counts as a success.
  void dismiss(FiberId child);
  // A scope or step has caught an error: restarts the time slice, so that cleanup can run.
  void caught();
  // Compiles source into the user environment and leaves the function on L's stack. Applies the JIT policy.
  Result<> compile(lua_State* L, std::string_view source, const std::string& chunk_name, bool ours);
  struct Chunk {
    std::string source;
    int function = 0;
  };  // by chunk name ("@train.lua")
  const std::map<std::string, Chunk>& chunks() const { return chunks_; }
  Result<std::string> module_source(const std::string& name);         // pinned; invalid: no such module
  std::map<std::string, std::string>& modules() { return modules_; }  // pinned sources of the user's modules
  void print(std::string_view text);
  detail::Driver::Node& drivers() { return drivers_; }

 private:
  friend struct AwaitAccess;
  LuaHost(Loop& loop, HostOptions options);
  Result<> open_libraries();
  void resume(Fiber& fiber, int values);
  void end_fiber(Fiber& fiber, int status);
  void refused(Fiber& fiber);  // the fiber is cancelled: refuses a wait
  static void hook(lua_State* L, lua_Debug* ar);
  struct Watchdog;

  Loop& loop_;
  HostOptions options_;
  engine::Run* run_ = nullptr;
  engine::RunControl* control_ = nullptr;
  engine::Fibers* run_fibers_ = nullptr;
  std::unique_ptr<State> state_;
  std::map<FiberId, std::unique_ptr<Fiber>> fibers_;
  detail::Driver::Node drivers_;  // sentinel of a circular list
  std::set<FiberId> dismissed_;
  std::map<std::string, Chunk> chunks_;
  std::map<std::string, std::string> modules_;
  Fiber* current_ = nullptr;
  std::atomic<bool> interrupt_{false};
  bool grace_given_ = false;  // a fiber that computes gets a grace period before a cancel interrupts it
  std::unique_ptr<Watchdog> watchdog_;
  std::atomic<bool> look_{false};  // the alarm has rung
  std::unique_ptr<Alarm> alarm_;
  std::shared_ptr<LuaHost*> self_;  // *self_ becomes null with the host's end: late completions check it
};

}  // namespace rille::host
