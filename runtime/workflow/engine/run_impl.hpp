// The engine's Run. Private to runtime/workflow/engine; the interface is run.hpp. Files: fibers.cpp (fibers, scopes,
// cancellation), durable.cpp (admission, completion, sleep, signals), steps.cpp and attempts.cpp, patched.cpp
// (markers), children.cpp (child runs), instances.cpp (leases and calls, carried out by calls.hpp), life.cpp (start,
// end, settling).
#pragma once

#include <map>
#include <set>
#include <unordered_map>

#include "runtime/core/base/deadline.hpp"
#include "runtime/core/store/journal.hpp"
#include "runtime/core/store/journal_failure.hpp"
#include "runtime/workflow/engine/metrics.hpp"
#include "runtime/workflow/engine/replay.hpp"
#include "runtime/workflow/engine/run.hpp"
#include "runtime/workflow/engine/run_lock.hpp"
#include "runtime/workflow/engine/scheduler.hpp"

namespace rille::lease {
class Manager;
struct Money;
}  // namespace rille::lease

namespace rille::engine {

class Calls;
class Connector;

std::uint64_t name_hash(std::string_view name);

// What is kept of an error that a limit of memory or disk has no room for: its kind and the beginning of its message.
Error shortened(const Error& e);

constexpr std::string_view no_args_sha256 = "74234e98afe7498fb5daf1f36ac2d78a";  // sha256("null"): no arguments

struct ScopeRecord {
  ScopeId id = 0;
  std::string name;
  std::int64_t number = 0;  // counts the fiber's scopes from 1; 0: the fiber's root scope
  ScopeRecord* parent = nullptr;
  FiberId owner = 0;
  std::unique_ptr<CancelSource> source;
  bool transparent = false;         // true: the scope of one input at the REPL's prompt, which owns nothing
  bool releases = false;            // the release of the scope's leases has begun
  bool shielded = false;            // the scope unwinds: a cancel no longer reaches the fiber, so that cleanup can run
  std::set<FiberId> children;       // running fibers spawned in this scope
  std::vector<std::string> leases;  // ids of the leases to release at the end, in the order of renting
  std::optional<Error> failure;     // the first error of a child
  std::vector<Wake<bool>> settled;  // waiters for `children` to be empty
  std::vector<FiberId> failed;      // failed children, whose errors are in RunImpl::failures_
  CancelToken::Registration interrupt;
};

// A step on the fast path, between plain_begin and plain_end (plain_steps.cpp).
struct PlainStep {
  std::string name, source;
  std::int64_t pos = 0, occurrence = 0, started_us = 0;
  std::int64_t seq = 0;      // seq of the queued outcome that the fiber waits for; 0: the fiber does not wait
  std::uint64_t ticket = 0;  // the step's key in steps_ if it has left the fast path; 0: it has not
};

// A pool permit that the fiber held in its record. The fiber takes it again when the replay is over.
struct OwedPermit {
  PoolSpec pool;
  std::string key;
};

// The state of a fiber. The run drops it when the fiber has ended; operations in progress keep it alive.
struct FiberRecord : std::enable_shared_from_this<FiberRecord> {
  FiberId id = 0;
  std::string path;
  ScopeRecord* root = nullptr;
  ScopeRecord* scope = nullptr;  // the innermost open scope
  std::int64_t next_pos = 0, scopes = 0;
  mutable std::optional<std::uint64_t> seed;  // the fiber's random seed; computed at first use
  // Uses of each name, keyed by a hash of the name, so that a million names need little memory. Two names with the same
  // hash share a counter, deterministically.
  std::unordered_map<std::uint64_t, std::int64_t> occurrences, child_names;
  PlainStep plain;
  mutable std::optional<std::uint64_t> plain_seed;  // the part of a step's seed that all steps of the fiber share
  int waiting = 0;                                  // > 0: only the replay or another fiber can wake this fiber
  bool body_done = false, ended = false;
  std::vector<OwedPermit> owed;
  Result<Value> result = Value();
  std::vector<Wake<bool>> joiners;
  MemoryHeld counted;
};

// While it exists, the fiber counts as waiting for the replay or another fiber. If every fiber waits like this during
// a replay, the replay is stuck.
struct Waiting {
  std::shared_ptr<FiberRecord> fiber;
  explicit Waiting(FiberRecord& f) : fiber(f.shared_from_this()) { ++fiber->waiting; }
  ~Waiting() { --fiber->waiting; }
  Waiting(const Waiting&) = delete;
};

// The state of an admitted durable operation.
struct Admitted {
  std::shared_ptr<FiberRecord> fiber;
  std::int64_t pos = 0, occurrence = 1;
  std::string key, args_sha256;
  Operation operation;
  int attempt = 1;
  std::int64_t next_us = 0, started_us = 0;
  bool begun = false;  // the record has this operation as begun and not completed
  Value progress;      // a step's data for a resume (see attempts.cpp); written when an attempt starts
  std::optional<Result<Value>> recorded;
  std::shared_ptr<QueuedEntry> row;  // the operation's row; null until a write is queued or a `begun` row was read
};

// A step between its begin and its end.
struct StepState {
  Admitted slot;
  StepOptions options;
  FiberId fiber = 0;
  std::int64_t since_us = 0;  // start of the first attempt since the step began or was last resumed from a pause
  bool body_running = false;
  // For a body with a time limit: `scope` is the body's scope, due_ms is when to cancel it by the monotonic clock, and
  // `late` is why it was cancelled. total_due_ms (deadline of all attempts) and silent_ms (deadline of the next
  // heartbeat): 0: no limit.
  ScopeId scope = 0;
  std::int64_t due_ms = INT64_MAX, total_due_ms = 0, silent_ms = 0;
  std::unique_ptr<Timer> limit;
  std::optional<Error> late;
  std::int64_t heartbeat_us = 0;     // when the last heartbeat was written
  bool heartbeat_waits = false;      // a newer heartbeat waits to be written
  std::unique_ptr<Timer> heartbeat;  // writes the waiting heartbeat
};

// Whether the error means that the journal could not be read or written. The error that another process runs the run
// has kind `state` and does not count.
inline bool of_journal(const Error& e) {
  return e.operation == "journal" && e.kind != ErrorKind::state && store::journal_has_failed();
}

inline RetryPolicy call_restarts() {
  RetryPolicy p;
  p.attempts_max = 10;
  p.initial_ms = 500;
  return p;
}

struct RunConfig {
  std::string id, script, home;
  Mode mode = Mode::durable;
  Value args;
  RunHooks hooks;
  bool apart = false;                         // a failed child fiber of the main fiber ends no other fiber
  std::int64_t epoch = 1, number = 0;         // columns of the run's row; number: set for durable runs only
  std::int64_t deadline_us = 0;               // wall time at which the run is cancelled; 0: no deadline
  std::shared_ptr<const store::Blobs> blobs;  // where large values are stored; null: all values are inline
  bool died = true;                           // an earlier process died instead of suspending the run
  std::string self_exe;
  std::function<std::string()> install_identity;
  std::shared_ptr<Connector> connector;    // null: the run makes one for real machines
  RetryPolicy restarts = call_restarts();  // restarts of calls that died; attempts_max: in a row without a checkpoint
  bool keeps_metrics = false;              // whether there is a folder for them
  RunLock lock;                            // held while the run exists
  class Engine* engine = nullptr;          // null: an ephemeral run
  std::string edited;                      // edited script to continue with; "": continue with the pinned script
  std::string seed;                        // run id that seeds random numbers; "": this run's id
};

class RunImpl final : public Run {
 public:
  RunImpl(Loop& loop, RunConfig config, store::Journal* journal, lease::Manager* leases, Replay replay);
  ~RunImpl() override;

  const std::string& id() const override { return config_.id; }
  Mode mode() const override { return config_.mode; }
  Loop& loop() override { return loop_; }
  const RunHooks& hooks() const override { return config_.hooks; }
  std::string home() const override;
  Value args() const override { return config_.args; }
  void limit(const RunLimits& limits) override;
  Async<Value> execute(Guest& guest, FunctionRef main, Value argument) override;
  void cancel(Error reason) override;
  bool cancel_waits() const override { return planned_cancel_.has_value(); }
  void cancel_now() override;
  void stop_cleanup(Error reason) override;
  std::int64_t look_at_clock() override;

  const Error* cancelled(FiberId fiber) const override;
  bool replaying() const override { return config_.mode == Mode::durable && !replay_.over(); }
  std::uint64_t seed(FiberId fiber) const override;
  std::string path(FiberId fiber) const override;
  void hold_fibers() override { scheduler_.hold(); }
  void release_fibers() override { scheduler_.release(); }
  Result<> metric(const agent::Metric& metric) override;
  Result<std::string> pinned(const std::string& module, const std::function<Result<std::string>()>& load) override;

  ScopeId root_scope(FiberId fiber) const override;
  Result<FiberId> spawn(FiberId parent, std::string name, FunctionRef function, Value argument) override;
  Async<> join(FiberId self, FiberId child) override;
  Async<std::size_t> join_any(FiberId self, std::vector<FiberId> children, bool journaled) override;
  void cancel_fiber(FiberId child, Error reason) override;
  bool ended(FiberId fiber) const override;
  void fiber_done(FiberId id, Result<Value> result) override;
  ScopeId scope_enter(FiberId fiber, std::string name) override;
  Async<> scope_settle(FiberId fiber, ScopeId scope, std::optional<Error> failure) override;
  Async<> scope_release(FiberId fiber, ScopeId scope, std::vector<std::string> kept) override;
  void scope_leave(FiberId fiber, ScopeId scope) override;
  ScopeId entry_enter(FiberId fiber) override;
  void cancel_scope(ScopeId scope, Error reason) override;

  Async<StepTicket> step_begin(FiberId fiber, Operation step, StepOptions options) override;
  Async<StepOutcome> step_probed(FiberId fiber, StepTicket ticket, Result<ProbeAnswer> answer) override;
  Async<StepOutcome> step_end(FiberId fiber, StepTicket ticket, Result<Value> body) override;
  Result<> step_heartbeat(FiberId fiber, const StepTicket& ticket, Value progress) override;
  bool plain_begin(FiberId id, std::string_view name, std::string_view source, std::uint64_t& seed) override;
  void plain_waits(FiberId id) override;
  bool plain_end(FiberId id, const Value& result) override;
  StepTicket plain_ticket(FiberId id) override;
  Async<> sleep(FiberId fiber, std::string name, std::int64_t ms, std::string source) override;
  Async<double> now(FiberId fiber, std::string source) override;
  Async<bool> patched(FiberId fiber, std::string name, std::string source) override;
  Async<Value> signal(FiberId fiber, std::string name, std::int64_t timeout_ms, Value otherwise,
                      std::string source) override;
  Async<Value> offers(FiberId fiber, Value query, std::string source) override;
  Async<Value> price_history(FiberId fiber, Value query, std::string source) override;
  Async<Value> quotas(FiberId fiber, Value query, std::string source) override;
  Result<> set_budget(FiberId fiber, const Value& options) override;
  Async<LeaseView> rent(FiberId fiber, std::string name, Value options, std::string source) override;
  Async<VolumeView> volume(FiberId fiber, std::string name, Value options, std::string source) override;
  Result<VolumeView> volume_view(const std::string& lease_id) const override;
  Async<> release(FiberId fiber, std::string lease_id, std::string source) override;
  Async<Value> replace(FiberId fiber, std::string lease_id, Value options, std::string source) override;
  Async<Value> resize(FiberId fiber, std::string lease_id, Value options, std::string source) override;
  Async<Value> preempting(FiberId fiber, std::string lease_id, std::string source) override;
  Async<> detach(FiberId fiber, std::string lease_id, std::int64_t ttl_ms, std::string source) override;
  void keep_lease(FiberId fiber, const std::string& lease_id, ScopeId scope) override;
  Async<Value> telemetry(FiberId fiber, std::vector<std::string> lease_ids, std::string source) override;
  Result<LeaseView> lease(const std::string& lease_id) const override;
  Result<Value> standing(const std::string& lease_id) const override;
  Async<Value> call(FiberId fiber, std::string lease_id, CallSpec spec, std::string source) override;
  Async<Value> stage(FiberId fiber, std::string lease_id, std::string from, std::string to, Value options,
                     std::string source) override;
  Async<Value> get(FiberId fiber, std::string lease_id, std::string from, std::string to, Value options,
                   std::string source) override;
  Async<std::string> pool_enter(FiberId fiber, PoolSpec pool, std::string source) override;
  void pool_leave(FiberId fiber, const std::string& pool, const std::string& permit) override;
  Async<Value> child(FiberId fiber, ChildSpec spec, std::string source) override;
  Async<Value> recorded(FiberId fiber, Operation operation, std::function<Async<Value>(CancelToken)> live) override;
  CancelToken cancel_token(FiberId fiber) const override;

  void event(const std::string& name, Value data);  // reports an event to the hooks and the audit trail

 private:
  friend class Calls;
  // fibers.cpp
  FiberRecord& fiber(FiberId id) { return *fibers_.at(id); }
  const FiberRecord& fiber(FiberId id) const { return *fibers_.at(id); }
  ScopeRecord* scope(ScopeId id) const {
    auto it = scopes_.find(id);
    return it == scopes_.end() ? nullptr : it->second.get();
  }
  FiberRecord& new_fiber(std::string path, ScopeRecord* parent);
  ScopeRecord& new_scope(std::string name, ScopeRecord* parent, FiberId owner);
  void drop_scope(ScopeId id);
  Async<> children_end(FiberRecord& fiber, ScopeRecord& scope);
  void child_failed(ScopeRecord& scope, const Error& error);
  void finish_fiber(FiberId id);
  Task<void> finish_scopes(FiberId id);
  Task<void> finish_unrecorded(FiberId id);
  void end_fiber(FiberId id);
  CancelToken token(const FiberRecord& f) const;
  Async<Value> list_offers(Value query, CancelToken token);
  Async<LeaseView> adopt(Admitted slot, Result<std::optional<lease::Lease>> found);  // adopting.cpp
  Async<std::size_t> first_ended(FiberId self, std::vector<FiberId> children);
  static ScopeRecord& owner(FiberRecord& f);  // the innermost scope that can own leases and fibers
  void begin_cancel();
  std::int64_t look_at_cancel();  // checks for a cancel; returns the ms until the next check; -1: no check is needed
  void unwind(Error reason);
  std::vector<std::string> with_volumes(std::vector<std::string> leases) const;
  Async<> release_all(FiberRecord& f, std::vector<std::string> leases, Admitted slot);
  Admitted ending(FiberRecord& f, std::int64_t pos, std::string name, std::string source) const;
  // budget.cpp
  void alert_budgets();
  Async<Value> complete_setup(Admitted slot, Result<Value> outcome, store::Journal::Write setup);
  using Transfer = Async<Value> (Calls::*)(std::string, std::string, std::string, Value, CancelToken);
  Async<Value> transfer(FiberId id, const char* verb, Transfer how, std::string lease_id, std::string from,
                        std::string to, Value options, std::string source);

  Result<std::string> of_fork(const std::string& own, const std::string& recorded);
  std::string recorded_as(const std::string& lease_id) const;

  // durable.cpp
  Async<Admitted> admit(FiberId id, Operation operation);
  std::string next_key(FiberRecord& f, const std::string& name) const;  // key of the fiber's next operation `name`
  struct Failure {
    Error error;
    MemoryHeld counted;
  };
  Failure counted_failure(const Error& e) const;
  Result<std::string> counted_result(const Value& value, MemoryHeld& held);
  // Counts bytes of the journal that are written even if the limit disk_bytes refuses them. A run that writes too much
  // beyond the limit is cancelled; if it goes on in its cleanup, that is stopped.
  void count_row(std::size_t bytes);
  void wrote_beyond(std::size_t bytes, const Error& why);
  Async<Value> complete(Admitted slot, Result<Value> outcome, store::Journal::Write extra = nullptr);
  Async<> not_recorded(std::shared_ptr<FiberRecord> f, Error why);
  Error unrecorded(const Error& why) const;
  QueuedEntry& row_of(Admitted& slot) const;
  store::Journal::Write start_write(Admitted& slot);
  void record_start(Admitted& slot);
  Result<> check_entry(const Entry& entry, const Admitted& slot) const;
  Async<> wait_turn(FiberRecord& f, std::int64_t seq);
  Async<> wait_live(FiberRecord& f);
  Async<bool> release_gate(FiberRecord& f);
  void open_gates(const Result<>& how);
  void on_quiet();
  void diverge(Error error);
  std::int64_t now_us() const { return loop_.clock().wall_us(); }
  store::Fence fence() const { return *fence_; }

  // steps.cpp
  Async<StepOutcome> complete_step(std::uint64_t entry, Result<Value> outcome);
  Error uncertain(const Admitted& slot) const;

  // attempts.cpp
  Result<> take_over(StepState& step);
  Result<> not_too_late(const StepState& step) const;
  Async<> begin_attempt(std::uint64_t entry);
  std::optional<Error> end_attempt(StepState& step);
  std::int64_t look_at(StepState& step);
  void watch(std::uint64_t entry);
  static bool is_transient(const StepState& step, const Error& failure);
  std::optional<std::int64_t> next_pause_ms(const StepState& step, const Error& failure) const;
  Async<StepOutcome> give_up(std::uint64_t entry, Error failure, bool pauses);
  void pause(Error why);
  Async<> hold(FiberRecord& f);
  void suspend_when_calm();
  void suspend_now();
  void watch_deadline();
  std::int64_t monotonic_ms() const { return loop_.clock().monotonic_ns() / 1'000'000; }

  // plain_steps.cpp
  struct PlainRow;
  void plain_deliver();
  Task<void> plain_unrecorded(std::shared_ptr<FiberRecord> f, std::int64_t seq, Error why);
  // pools.cpp
  Async<> take_owed(std::shared_ptr<FiberRecord> f);

  // life.cpp
  void pin_edited();
  Result<> count_source(const std::string& module, const std::string& source);
  Async<Value> settle_run(Result<Value> result);

  Loop& loop_;
  RunConfig config_;
  store::Journal* journal_;  // null: an ephemeral run
  store::Journal::SharedFence fence_;
  lease::Manager* leases_;  // null: an ephemeral run
  Replay replay_;
  Scheduler scheduler_;
  std::int64_t next_seq_ = 1;
  Guest* guest_ = nullptr;
  FiberId next_fiber_ = 1;
  ScopeId next_scope_ = 1;
  std::map<FiberId, std::shared_ptr<FiberRecord>> fibers_;  // running fibers, and the main fiber
  std::map<FiberId, Failure> failures_;                     // of ended fibers, until their parent scope is left
  std::map<ScopeId, std::unique_ptr<ScopeRecord>> scopes_;
  std::map<std::int64_t, Wake<Result<>>> turns_;   // fibers waiting for recorded completions, by seq
  std::set<std::int64_t> passed_;                  // seqs whose fiber was cancelled before the delivery
  std::set<std::string> unwound_;                  // paths of fibers that failed or were cancelled
  std::vector<Wake<Result<>>> gate_;               // fibers waiting for the end of the replay
  std::map<FiberId, Wake<Result<bool>>> patches_;  // fibers whose patched() has no answer yet
  std::vector<Wake<bool>> release_gates_;  // waiting releases; woken with false if the record continues past them
  std::int64_t delivered_ = 0;             // seq of the last delivered completion
  std::optional<PlannedCancel> planned_cancel_;
  std::int64_t computes_since_ns_ = 0, computes_after_ = -1;  // since when fibers compute, and after which seq
  std::map<std::uint64_t, StepState> steps_;
  int bodies_ = 0;               // step bodies that run or are about to run
  std::optional<Error> paused_;  // set: no operation begins, and the run is suspended once all step bodies end
  bool suspended_ = false;
  std::vector<Wake<Result<>>> held_;                // operations that a paused run keeps from beginning
  std::optional<Wake<bool>> ended_;                 // set when the main fiber has ended or the run is suspended
  std::set<std::string> hinted_;                    // offers queries, as JSON, for which the hint was given
  std::map<std::string, std::string> recorded_as_;  // in a fork: lease id -> the id that the copied record has for it
  std::unique_ptr<Timer> deadline_timer_;
  std::optional<Deadline> deadline_;  // the run's deadline; set at the first check
  std::uint64_t next_step_ = 1;
  std::vector<std::unique_ptr<store::Journal::Queued>> plain_spare_, plain_ready_;  // PlainRows: unused, and written
  std::size_t plain_next_ = 0;    // index in plain_ready_ of the next row to deliver
  std::set<std::string> taking_;  // signals that are being recorded as taken
  std::map<std::string, std::string> pinned_;
  bool edited_ = false;   // the run continues with an edited script: its sources replace those in the journal
  bool followed_ = true;  // false: the edited sources are pinned at the end of the replay
  std::optional<Error> divergence_;
  std::optional<Error> cancel_reason_;
  CancelSource cleanup_;  // of what shielded scopes do
  RunLimits limits_;
  std::optional<MetricFile> metrics_;  // of the script; opened by its first metric
  std::string alert_url_;
  double alert_share_ = 0;  // share of the budget at which to warn, 0 to 1; 0: no warning, or already warned
  std::shared_ptr<Connector> connector_;
  std::unique_ptr<Calls> calls_;
  Lifetime life_;  // last: ends before all other members
};

}  // namespace rille::engine
