// LuaHost: runs Lua code as the Guest of one engine::Run. It owns the Lua state and the fibers' coroutines; the Run
// owns the durable state. A host serves one Run: call bind_run, then execute the Run; destroy the host before the Run.
// The destructor drops the work for which fibers still wait.
//
// Workflow rules (Rules::workflow) hold in durable runs outside of step bodies: no io, os, ffi, debug; deterministic
// pairs, next, math.random and tostring. Rules::open, for sessions and agents, also allows io and os. Under both rules
// every access to something outside of the Lua state also needs a grant (grants.hpp); options.grants grant everything
// by default.
//
// JIT: a hook cannot interrupt compiled code, so options.jit says what is compiled. Under a limit of time nothing is.
//
// Interruption: arm_interrupt() may be called from any thread and from a signal handler. At the next instruction of
// interpreted Lua the host calls options.on_interrupt (which may cancel the run). If the Run then reports the current
// fiber as cancelled, every instruction of script code raises the reason until a scope of the fiber catches it and
// cleans up. All other functions: loop thread only.
//
// Turns: when the time of options.turn is spent, the host suspends the code that runs (it "gives way") at the next
// instruction of interpreted Lua, unless a C function that called Lua stands in between (load with a function). C
// functions that may run long give way, too (PausedCall). Until go_on() nothing else of this run continues, so the
// order of fibers is the same as without turns.
#pragma once

#include <atomic>
#include <climits>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "bindings/host/await.hpp"
#include "bindings/host/bell.hpp"
#include "bindings/host/bind.hpp"
#include "bindings/host/captured.hpp"
#include "bindings/host/codec.hpp"
#include "bindings/host/grants.hpp"
#include "bindings/host/limits.hpp"
#include "bindings/host/object.hpp"
#include "bindings/host/paused.hpp"
#include "bindings/host/random.hpp"
#include "bindings/host/state.hpp"
#include "bindings/host/turn.hpp"
#include "runtime/core/base/work.hpp"
#include "runtime/workflow/engine/fibers.hpp"
#include "runtime/workflow/engine/run_control.hpp"

namespace rille::host {

enum class Rules { workflow, open };
// In a rehearsal no irreversible effect may happen: the function `sim` of a step runs instead of the step's body. For a
// step without `sim`, a plan uses nil as the result and a simulation fails.
enum class Rehearsal { no, simulate, plan };
// What may be compiled to machine code. never: only the prelude and the flow verbs, whose loops the host ends.
// on_request: Rille's Lua modules, and the user's chunks with the comment `-- rille: jit` in their first lines.
enum class Jit { never, on_request, always };

struct HostOptions {
  std::size_t memory_limit_bytes = 0;  // for Lua's memory
  // Replaces memory_limit_bytes: one limit for Lua's memory, tensors on the CPU and results together. A child run
  // shares its parent's. May be null.
  std::shared_ptr<MemoryUse> memory;
  std::shared_ptr<DiskUse> disk;  // counts bytes written below the home; may be null
  Allocator allocator;
  Rules rules = Rules::workflow;
  Rehearsal rehearsal = Rehearsal::no;
  Jit jit = Jit::never;
  bool full_tracebacks = false;  // show Rille's Lua frames too (RILLE_TRACE=1)
  Limits limits;
  Grants grants = Grants::everything();
  // the host program has set a limit: native code, which cannot be limited, is refused
  bool under_limits = false;
  std::shared_ptr<Spending> spent;     // null: the host's own; a child run shares its parent's
  std::shared_ptr<Turn> turn;          // null: Lua never gives way
  std::string script_directory;        // folder where `require "x"` looks for x.lua; "": only Rille's modules are found
  std::function<void()> on_interrupt;  // called when arm_interrupt() has interrupted Lua code
  Value last_checkpoint;               // value of rille.last_checkpoint: what an earlier attempt of this call published
  // Only on an agent: returns the wall time of the preemption (0: none announced), and whether a replacement is
  // waiting.
  std::function<std::pair<std::int64_t, bool>()> preempting;
  std::vector<lua_CFunction> open;  // each is called with the `rille` table at index 1, to add functions and classes
};

// The limits of one call from the host program into a loaded script, and the call's use of them. The fibers that the
// call spawns share it.
struct Budget {
  std::shared_ptr<Spending> spent = std::make_shared<Spending>();
  std::unique_ptr<LimitClock> clock;  // null: no time limit
  std::shared_ptr<Work> work;         // the call's operations on devices; null: it has none
  std::optional<Error> over;          // the error of the exceeded time limit, or the reason of the interrupt
  FiberId root = 0;                   // the call's fiber; 0: a call that cannot wait
};

// A coroutine known to the engine.
struct Fiber {
  FiberId id = 0;
  lua_State* L = nullptr;
  int anchor = 0;  // registry reference that keeps L alive
  FunctionRef function = 0;
  std::uint64_t suspension = 0;    // number of awaits so far; a completion of an earlier await is dropped
  bool waiting = false;            // the fiber is suspended in await
  bool engine_wait = false;        // the fiber waits for an operation that the engine resolves on cancel
  int refused = 0;                 // number of waits that were refused because the fiber is cancelled
  bool starting = false;           // await has started the work but not yet yielded
  lua_State* awaiting = nullptr;   // the coroutine that called await: the fiber's main one or one of the script's
  int ready = -1;                  // results that the work pushed before await yielded; -1: none yet
  std::string step;                // the step whose body is running; "": none
  std::shared_ptr<Budget> budget;  // null: the limits of the whole host
  bool cannot_wait = false;        // the host program called this code and waits for its end (Entry)
  Random random;
  struct Plain {                       // state of a plain step, which uses Run::plain_begin
    bool runs = false, waits = false;  // runs: the body is running; waits: its result is being written
    Random outer;                      // the fiber's random generator, saved while the step runs
    Captured before;
    Value kept;  // copy of a table result as it is written to the journal
  } plain;
};

// The text of a script or module. Errors: io; invalid: more than 16 MB.
Result<std::string> read_source(const std::string& path);

class LuaHost final : public Guest {
 public:
  static Result<std::unique_ptr<LuaHost>> create(Loop& loop, HostOptions options);
  ~LuaHost() override;
  // Before the destructor, which may take long for a large Lua state: ends the host's work, and frees objects for about
  // a millisecond. true: what is left is small.
  bool close_some();
  void bind_run(engine::Run& run);
  // Instead of bind_run, for code that uses no durable function: gives the host only the parts of a run that it needs.
  void bind(engine::RunControl& control, engine::Fibers& fibers) {
    control_ = &control, run_fibers_ = &fibers;
    cancel_recorded_ = control.cancel_waits();
  }

  // Compiles a script from its text; bytecode is refused. Error `invalid`: a syntax error, with "file:line:".
  // Tracebacks show `name` ("=-e" as "-e").
  Result<FunctionRef> load(const std::string& name, const std::string& source);
  // Loads the file `path` as the main script; the run stores its text in the journal under the file's name.
  Result<FunctionRef> load_file(const std::string& path);
  // Loads a function, with its arguments, that another process has shipped to this one (see ship.hpp).
  Result<FunctionRef> load_shipped(const Value& payload);

  // The interface Guest, which the engine calls.
  void start(FiberId id, FunctionRef function, const Value& argument) override;
  void cancel(FiberId id, const Error& reason) override;
  std::string where(FiberId id) const override;
  void plain_done(FiberId id, const Error* failure) override;
  void drop_work(const Error& reason) override;

  // The operations on devices that the running code starts belong to this: to the run, or to the call from the host
  // program.
  const std::shared_ptr<Work>& work() const { return budget_ && budget_->work ? budget_->work : work_; }
  void on_work(std::function<void()> changed) { on_work_ = std::move(changed); }  // called when work() changes
  void work_is_over(const Work* work, const Error& why);                          // after a time limit was exceeded
  // Ends the running code if it must end, without raising an error: for code that waits inside a function of the host
  // program.
  void look() {
    if (current_ && hook_is_due()) must_end();
  }
  void arm_interrupt() noexcept;  // callable from any thread and in a signal handler
  // Makes the Run check its clock after `ms`, even while Lua computes. -1: no check is needed.
  void look_later(std::int64_t ms);

  void go_on();  // continues the code that gave way; called by the Turn

  // For the bindings of C++ functions.
  static LuaHost& of(lua_State* L) { return *static_cast<LuaHost*>(LuaState::of(L).owner); }
  lua_State* lua() const { return state_->lua(); }
  LuaState& state() { return *state_; }
  Loop& loop() { return loop_; }
  engine::Run& run() { return *run_; }  // valid after bind_run
  engine::RunControl& control() { return *control_; }
  engine::Fibers& fibers() { return *run_fibers_; }
  bool has_run() const { return control_ != nullptr; }
  const HostOptions& options() const { return options_; }
  Fiber* current() { return current_; }  // null if no fiber is running
  Fiber* find(FiberId id);
  Completion completion(Fiber& fiber);  // ends the fiber's current suspension
  const Grants& grants() const { return options_.grants; }
  // Replaces the grants; call before code runs, after bind_run.
  void grant(Grants grants);
  // Checks each connection of staging for the run; null if every connection is granted.
  std::function<Result<>(const std::string& host, const std::string& port)> may_connect() const;
  // The path to open for a file with code: a file beside the script needs no grant.
  Result<std::string> code_path(const std::string& path) const;
  // Whether io, os and other effects are allowed at this point.
  bool effects_allowed() const { return options_.rules == Rules::open || (current_ && !current_->step.empty()); }
  FunctionRef keep_function(lua_State* L, int index);  // keeps the function until a fiber that runs it has ended
  // Marks a child fiber that is cancelled on purpose (handle:cancel, the losers of a race): its end is no failure.
  void dismiss(FiberId child);
  // Call when the fiber has left a scope in which it was not interrupted: a cancelled fiber is interrupted from now on.
  void left_scope();
  // A limit of time was exceeded while the script waits.
  void time_is_over(Error limit);
  // After a limit of time: cleanup has had its time to wait, so no more code of the script runs.
  void end_grace() {
    if (clock_) clock_->end_grace();
  }
  // Raises the error that must end the code which runs now, if there is one. For C functions that may run long: they
  // call it every few thousand steps.
  void check(lua_State* L) {
    if (lua_gethook(L)) check_hook(L);
  }
  // After check(): whether the function must give way at this point. Then: `return host.give_way_in(L, rest)`.
  bool must_give_way(lua_State* L) const { return way_left_ == 0 && may_give_way(L); }
  int give_way_in(lua_State* L, std::unique_ptr<PausedCall> rest);
  Result<> may_spawn() const;  // quota: names the limit
  void spawned(FiberId child);
  // For calls from the host program into a loaded script (entry.cpp).
  std::shared_ptr<Budget> make_budget();                       // with the limits in options, all unused
  void renew(Budget& budget);                                  // resets it for the next call
  void set_budget(FiberId fiber, std::shared_ptr<Budget> of);  // before the fiber starts
  void call_is_over(Budget& budget, Error why);                // ends a call that waits, because of a time limit
  void cancel_call(Budget& budget, Error why);                 // also ends its operations on devices
  // ends the running call that cannot wait, if there is one
  void end_entry(Error why);
  // Compiles source and leaves the function on L's stack; its globals are those of user code. `ours`: it is Rille's
  // code.
  Result<> compile(lua_State* L, std::string_view source, const std::string& chunk_name, bool ours);
  // Registry references of a compiled text and its function; chunks() finds it by the chunk name ("@train.lua").
  struct Chunk {
    int source = 0;
    int function = 0;
  };
  const std::map<std::string, Chunk>& chunks() const { return chunks_; }
  std::string_view source_of(const Chunk& chunk) const;  // valid while the chunk exists
  // source of a script's module, as stored in the journal; error `invalid`: no such module
  Result<std::string> module_source(const std::string& name);
  // sources of the script's modules by name, as stored in the journal
  std::map<std::string, std::string>& modules() { return modules_; }
  Result<> print(std::string_view text);  // error `quota`: names the exceeded limit
  detail::Driver::Node& drivers() { return drivers_; }

 private:
  friend struct AwaitAccess;
  friend class Entry;
  friend class WithBudget;
  LuaHost(Loop& loop, HostOptions options);
  Result<> open_libraries();
  void end_work();
  void resume(Fiber& fiber, int values);
  void after_way();
  void after_way_later();
  void resume_later(FiberId id, int values);
  void run_lua(Fiber& fiber, int values, Fiber* outer);
  void refuse_start(FiberId id, FunctionRef function);
  bool give_up(Fiber& fiber);
  bool has_cleanup(const Fiber& fiber) const;
  std::shared_ptr<Work> make_work();
  void end_fiber(Fiber& fiber, int status);
  void refused(Fiber& fiber);  // called when a cancelled fiber was refused a wait
  static void hook(lua_State* L, lua_Debug* ar);
  void check_hook(lua_State* L);
  void arm(int count);
  void arm_resumed(const Fiber& fiber, bool exceeded);
  void set_hook();
  bool hook_is_due() const;
  bool count_instructions(int count);
  void watch_turn();
  void turn_ends();
  bool may_give_way(lua_State* L) const;
  static bool called_by_lua(lua_State* L);
  void give_way();
  void set_gives_way(bool on);
  int go_on_paused(Fiber& fiber);
  const Error* must_end();  // null: the code may go on
  [[noreturn]] void raise_again(lua_State* L, const Error& why);
  bool always_interrupted() const { return over_ && (!clock_ || clock_->grace_over()); }

  Loop& loop_;
  HostOptions options_;
  engine::Run* run_ = nullptr;
  engine::RunControl* control_ = nullptr;
  engine::Fibers* run_fibers_ = nullptr;
  std::unique_ptr<LuaState> state_;
  std::unique_ptr<Bell> bell_;
  std::map<FiberId, std::unique_ptr<Fiber>> fibers_;
  detail::Driver::Node drivers_;  // sentinel of a circular list
  std::set<FiberId> dismissed_;
  std::map<std::string, Chunk> chunks_;
  std::map<std::string, std::string> modules_;
  Fiber* current_ = nullptr;
  Fiber entered_;  // stands for code that the host program calls while no fiber runs
  // the budget whose limits apply now; they are swapped with over_, clock_ and options_.spent
  Budget* budget_ = nullptr;
  std::map<FiberId, std::shared_ptr<Budget>> unborn_;  // budgets of fibers that have not started
  std::atomic<bool> interrupt_{false};
  // Why the hook is set, besides the flags of other threads. 0: no reason; 1: the code must end, so the hook runs at
  // every instruction; more: instructions left of a grace period.
  int armed_ = 0;
  std::atomic<bool> turn_rang_{false};  // set by the watchdog: the turn's time is spent
  // Instructions until the running code must give way. way_never: it need not.
  static constexpr int way_never = INT_MAX;
  int way_left_ = way_never;
  bool ended_ = false;      // by end_work()
  bool gives_way_ = false;  // the code is being suspended; coroutines of the script pass the yield on to their parent
  // The run's journal records a cancel. On replay it takes effect at the recorded point, not where code gives way.
  bool cancel_recorded_ = false;
  bool gave_way_ = false;                        // the current fiber is suspended in the middle of a computation
  std::deque<std::function<void()>> after_way_;  // run once the current fiber waits: they continue other fibers
  std::unique_ptr<Watchdog::Watch> turn_watch_;
  std::unique_ptr<PausedCall> paused_;  // the C function that has given way; null: none
  lua_State* paused_in_ = nullptr;      // the coroutine of paused_
  bool paused_by_lua_ = false;          // the hook raises the error of paused_; false: the prelude raises it
  // paused_where_: script position of the call of paused_; paused_error_: the error that the hook raises
  std::string paused_where_, paused_error_;
  bool grace_given_ = false;  // a fiber that computes gets a grace period before a cancel interrupts it
  int checks_ = 0;            // checks made by C functions while a grace period in instructions runs
  struct {
    std::string message;  // text of the error from which `ref` was made
    int ref = LUA_NOREF;
  } raised_;                   // the last error raised by the hook
  std::optional<Error> over_;  // the error of the exceeded time limit
  std::shared_ptr<Work> work_;
  std::vector<std::weak_ptr<Work>> works_;  // work_, and the work of each call from the host program
  std::function<void()> on_work_;
  bool dropped_ = false;           // drop_work was called
  std::int64_t spawned_ = 0;       // this host's share of options_.spent->fibers
  std::atomic<bool> look_{false};  // the alarm has rung
  std::unique_ptr<Watchdog::Watch> alarm_;
  std::unique_ptr<LimitClock> clock_;  // null: no limit of time
  std::shared_ptr<LuaHost*> self_;     // *self_ becomes null when the host ends; completions check this
};

// While it exists, the limits of `budget` apply to the host; a null `budget` changes nothing.
class WithBudget {
 public:
  WithBudget(LuaHost& host, Budget* budget);
  ~WithBudget();
  WithBudget(const WithBudget&) = delete;

 private:
  void swap();
  void tell() const {
    if (host_.on_work_) host_.on_work_();
  }
  LuaHost& host_;
  Budget* budget_;
  Budget* outer_ = nullptr;
};

// A call of the host program into the Lua state that cannot wait. Made inside a host function that a script called, it
// belongs to the running fiber; else it has the rights of the main fiber, and `budget` (null: the host's limits).
class Entry {
 public:
  Entry(LuaHost& host, Budget* budget);
  ~Entry();
  Entry(const Entry&) = delete;
  bool is_over() const { return outermost_ && host_.over_; }
  // The reason why the call had to end, even if the script caught the error.
  std::optional<Error> over() const { return outermost_ ? host_.over_ : std::nullopt; }
  Error error(lua_State* from);  // takes the error, with its traceback, from the top of that coroutine's stack

 private:
  LuaHost& host_;
  bool outermost_;
  Fiber* outer_ = nullptr;  // the fiber that gave way, while this call runs
  int outer_armed_ = 0;
  std::optional<Bell::Here> here_;
  std::optional<WithBudget> limits_;
};

// The path that may be opened for reading.
inline Result<std::string> may_read(lua_State* L, std::string_view path, Grants::Names names = Grants::Names::file) {
  return LuaHost::of(L).grants().read(std::string(path), names);
}

}  // namespace rille::host
