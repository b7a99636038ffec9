// Run: one execution of a script, durable by re-execution. The engine keeps fibers as records (path, ordinal, scope,
// cancellation), answers durable operations from the journal on resume, and lets live effects begin only after every
// recorded completion has been delivered in its recorded order. Code runs in a Guest; the guest's fibers call the
// operations below, each of which names the calling fiber first.
//
// Modes: `durable` journals everything; `session` (the REPL) journals leases only and is never replayed; `ephemeral`
// (code on an agent) has no journal: steps run once and sleep just sleeps.
// Loop thread only. Operations fail with `cancelled` (or the reason of the scope) once the fiber's scope is cancelled,
// at every suspension point, until the scope has unwound; a shielded scope is exempt. `divergence` is raised before
// any effect.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/base/guest.hpp"
#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/engine/pools.hpp"
#include "runtime/workflow/engine/step.hpp"

namespace rille::engine {

enum class Mode { durable, session, ephemeral };

using ScopeId = std::uint64_t;

// What a verb records: its kind ("step", "rent", "call", ..), its name, and what identifies its arguments.
struct Operation {
  // Not an aggregate: GCC 12 destroys brace-made temporaries in a co_await expression twice (see loop/task.hpp).
  Operation() = default;
  Operation(std::string k, std::string n, Value a, std::string s)
      : kind(std::move(k)), name(std::move(n)), args(std::move(a)), source(std::move(s)) {}
  std::string kind, name;
  Value args;          // hashed into the entry; a change is divergence
  std::string source;  // "train.lua:12", for messages
};

// What a script sees of a lease. A lease is logical: the name is its identity, generations are machines behind it.
struct LeaseView {
  std::string id;  // unique; derived from run and name
  std::string name, provider, state, machine_id, region, gpu;
  int gpu_count = 0, generation = 1, vcpus = 0;
  std::int64_t memory_bytes = 0, price_micros_per_hour = 0, created_wall_us = 0, expires_wall_us = 0, spent_micros = 0;
  bool spot = false;
  std::map<std::string, std::int64_t> costs;  // until now, by currency: millionths of each
  std::string shown_price;                    // of an hour, in whatever currency it is known; "?"
  Value to_value() const;
};

// A function or a program to run on an instance.
struct CallSpec {
  std::string name;
  Value payload;                  // kind "lua": what the host's shipping made; kind "exec": {argv, env, ...}
  std::string kind = "lua";       // or "exec"
  bool keep_checkpoints = false;  // checkpoint = rille.home: copy what the call publishes to the run's home
  bool setup = false;             // also on each further machine of its lease, before anything else runs there
  std::int64_t timeout_ms = 0;    // 0: none
  // what the args hash covers besides the name (source place, args); never bytecode
  std::string identity;
  Value sim;  // how it goes on a simulated machine; see sim_agents.hpp
};

// A run that a script starts and waits for.
struct ChildSpec {
  ChildSpec() = default;  // not an aggregate: see loop/task.hpp
  std::string script;     // a file, as seen from the folder of the parent's script
  Value args;
  std::string id;  // of whoever asks first; the others get its outcome. "" = made from the parent's
};

// What the host program allows a run, whatever its script says. -1: no limit.
struct RunLimits {
  RunLimits() = default;
  std::int64_t spend_micros = -1;  // the highest budget that rille.budget may set
  std::int64_t leases_max = -1;    // held at a time
};

class Run;
struct RunHooks;

// The code of a run, in whatever language, ready to be executed in it. Destroyed before the run.
class Program {
 public:
  virtual ~Program() = default;
  virtual Guest& guest() = 0;
  virtual FunctionRef main() = 0;
};

// What the edge does for runs that a script starts.
class ChildPrograms {
 public:
  virtual ~ChildPrograms() = default;
  virtual RunHooks hooks(const std::string& run) = 0;  // that the child is told by
  virtual Result<std::unique_ptr<Program>> load(Run& child, const std::string& script) = 0;
};

// What the edge is told. All optional; called on the loop thread.
struct RunHooks {
  std::function<void(std::string_view text)> print;     // output of the script and of its calls, as it was written
  std::function<void(const Value& progress)> progress;  // {what, done, total, unit, loss, rate, seconds_left, ...}
  std::function<void(const Value& event)> event;        // {event, ...}: rent, live, released, step, retry, warning
  std::shared_ptr<ChildPrograms> children;              // null: this run cannot start others
};

class Run : public FiberSink {
 public:
  virtual const std::string& id() const = 0;
  virtual Mode mode() const = 0;
  virtual Loop& loop() = 0;
  virtual const RunHooks& hooks() const = 0;
  // <RILLE_HOME>/runs/<id>, made on demand; for ephemeral runs the working directory.
  virtual std::string home() const = 0;
  virtual Value args() const = 0;  // the run's input, as given by --x and `args`

  // Before execute.
  virtual void limit(const RunLimits&) {}
  // Runs `main` as fiber 1 and then settles: children, leases, journal. Once. The guest may be destroyed before the
  // run, after it ended.
  virtual Async<Value> execute(Guest& guest, FunctionRef main, Value argument) = 0;
  // The foreground cancel of Ctrl-C and `rille cancel`: unwinds the script with this reason, then cleans up.
  // It takes effect as soon as every fiber waits; a guest whose fiber computes on and on says cancel_now.
  virtual void cancel(Error reason) = 0;
  virtual bool cancel_waits() const = 0;
  virtual void cancel_now() = 0;
  // For code that computes while the loop does not turn: cancels what has had its time, and gives the milliseconds to
  // the next such moment, or -1.
  virtual std::int64_t look_at_clock() = 0;

  // --- what a guest asks about a fiber
  virtual const Error* cancelled(FiberId fiber) const = 0;  // why it must unwind now, or null
  // Whether what happens now happened before, in the record: output of the script was shown then.
  virtual bool replaying() const = 0;
  virtual std::uint64_t seed(FiberId fiber) const = 0;  // from run id and fiber path
  virtual std::string path(FiberId fiber) const = 0;    // "main/worker#1"
  // The pinned source of a module or script: read by `load` the first time, from the journal ever after.
  virtual Result<std::string> pinned(const std::string& module, const std::function<Result<std::string>()>& load) = 0;

  // --- fibers and scopes. A fiber begins in a scope of its own (root_scope), which is a child of the scope it was
  // spawned in. A guest may settle, clean up and release that scope itself before fiber_done, exactly as for
  // scope_enter's (so that the body's defers run in its fiber); what it leaves undone, the engine does before the
  // fiber counts as ended.
  virtual ScopeId root_scope(FiberId fiber) const = 0;
  virtual Result<FiberId> spawn(FiberId parent, std::string name, FunctionRef function, Value argument) = 0;
  // ends when the child has; its error if it failed
  virtual Async<> join(FiberId self, FiberId child) = 0;
  // The index of the first to end. Which one that is can depend on what is in no record (how long a release takes), so
  // where the script acts upon it, it is an entry of its own.
  virtual Async<std::size_t> join_any(FiberId self, std::vector<FiberId> children, bool journaled = true) = 0;
  virtual void cancel_fiber(FiberId child, Error reason) = 0;
  virtual bool ended(FiberId fiber) const = 0;

  // scope_enter; body; scope_settle (cancels children when the body failed, waits for them, gives the first error of a
  // child); the guest's defers; scope_release (releases leases in reverse order, but for `kept`, which move to the
  // parent scope); scope_leave. From scope_settle on, the scope is shielded from cancellation.
  virtual ScopeId scope_enter(FiberId fiber, std::string name) = 0;
  virtual Async<> scope_settle(FiberId fiber, ScopeId scope, std::optional<Error> failure) = 0;
  virtual Async<> scope_release(FiberId fiber, ScopeId scope, std::vector<std::string> kept) = 0;
  virtual void scope_leave(FiberId fiber, ScopeId scope) = 0;

  // One entry at the prompt: a scope that can be cancelled alone, but owns nothing. What is rented or spawned in it
  // belongs to the session. Left by scope_leave.
  virtual ScopeId entry_enter(FiberId fiber) = 0;
  virtual void cancel_scope(ScopeId scope, Error reason) = 0;

  // --- durable verbs
  // step_begin; where the ticket asks for it, the probe and step_probed; the body; step_end; the body again while the
  // outcome says so. state: between begin and end, for what the step does not have (see step.hpp).
  virtual Async<StepTicket> step_begin(FiberId fiber, Operation step, StepOptions options) = 0;
  virtual Async<StepOutcome> step_probed(FiberId fiber, StepTicket ticket, Result<ProbeAnswer> answer) = 0;
  virtual Async<StepOutcome> step_end(FiberId fiber, StepTicket ticket, Result<Value> body) = 0;
  // What the body wants its next attempt to know. Of several in a second the last is written.
  virtual Result<> step_heartbeat(FiberId fiber, const StepTicket& ticket, Value progress) = 0;
  // --- the short way of a step without options: no coroutine, and one suspension (plain_steps.cpp). Once plain_begin
  // has said yes, either plain_end does, and Guest::plain_done or Guest::cancel tells the rest, or plain_ticket makes
  // it a step that step_begin began: for a body that fails, and when plain_end says no.
  // False, and nothing has happened: it is in the record, or must wait for it. `seed`: of the body's random numbers.
  virtual bool plain_begin(FiberId, std::string_view /*name*/, std::string_view /*source*/, std::uint64_t& /*seed*/) {
    return false;
  }
  virtual void plain_waits(FiberId) {}  // the body suspends: that it has begun is recorded
  virtual bool plain_end(FiberId, const Value& /*result*/) { return false; }
  virtual StepTicket plain_ticket(FiberId) { return {}; }
  virtual Async<> sleep(FiberId fiber, std::string name, std::int64_t ms, std::string source) = 0;
  virtual Async<double> now(FiberId fiber, std::string source) = 0;  // seconds since 1970, UTC
  // Whether code that this marker guards is this run's: true, and recorded, unless the run came past this place before
  // the marker was put there.
  virtual Async<bool> patched(FiberId fiber, std::string name, std::string source) = 0;
  virtual Async<Value> signal(FiberId fiber, std::string name, std::int64_t timeout_ms, Value otherwise,
                              std::string source) = 0;
  virtual Async<Value> offers(FiberId fiber, Value query, std::string source) = 0;  // list of offer objects
  virtual Result<> set_budget(FiberId fiber, const Value& options) = 0;

  virtual Async<LeaseView> rent(FiberId fiber, std::string name, Value options, std::string source) = 0;
  virtual Async<> release(FiberId fiber, std::string lease_id, std::string source) = 0;
  // Another machine for the lease, of the next generation, set up as this one was; gives { generation }.
  virtual Async<Value> replace(FiberId, std::string /*lease_id*/, Value /*options*/, std::string /*source*/) {
    co_return make_error(ErrorKind::state, "nothing is rented here");
  }
  // When its machine will be taken away, in seconds since 1970; null: nobody has said so.
  virtual Async<Value> preempting(FiberId, std::string /*lease_id*/, std::string /*source*/) {
    co_return make_error(ErrorKind::state, "nothing is rented here");
  }
  // From here on it is the home's, which ends it after ttl_ms; its scope leaves it alone.
  virtual Async<> detach(FiberId, std::string /*lease_id*/, std::int64_t /*ttl_ms*/, std::string /*source*/) {
    co_return make_error(ErrorKind::state, "nothing is rented here");
  }
  // The lease ends with that scope, which is around the fiber's, rather than with the one in which it was rented.
  // Nothing happens when there is no such scope any more, or it is ending.
  virtual void keep_lease(FiberId, const std::string& /*lease_id*/, ScopeId /*scope*/) {}
  // What the machines of these leases do now: a reading for each, in their order, or { error } of those that cannot be
  // asked. Its members: agent/usage.hpp.
  virtual Async<Value> telemetry(FiberId, std::vector<std::string> /*lease_ids*/, std::string /*source*/) {
    co_return make_error(ErrorKind::state, "nothing is rented here");
  }
  virtual Result<LeaseView> lease(const std::string& lease_id) const = 0;
  virtual Async<Value> call(FiberId fiber, std::string lease_id, CallSpec spec, std::string source) = 0;
  virtual Async<Value> stage(FiberId fiber, std::string lease_id, std::string from, std::string to, Value options,
                             std::string source) = 0;
  virtual Async<Value> get(FiberId fiber, std::string lease_id, std::string from, std::string to, Value options,
                           std::string source) = 0;

  // A permit of a pool, for the time until pool_leave, which wants what this gives.
  virtual Async<std::string> pool_enter(FiberId fiber, PoolSpec pool, std::string source) = 0;
  virtual void pool_leave(FiberId fiber, const std::string& pool, const std::string& permit) = 0;

  // Another script as a run of its own: its record, its leases, its budget. Cancelled with the fiber, and waited for
  // even then. Gives its result, or its error as the cause of one.
  virtual Async<Value> child(FiberId fiber, ChildSpec spec, std::string source) = 0;

  // Host functions and other effects that are recorded once done: runs `live` unless the journal has the answer.
  virtual Async<Value> recorded(FiberId fiber, Operation operation, std::function<Async<Value>(CancelToken)> live) = 0;
};

// A run for code on an agent: no journal, no leases.
std::unique_ptr<Run> make_ephemeral_run(Loop& loop, std::string name, std::string directory, Value args,
                                        RunHooks hooks);

}  // namespace rille::engine
