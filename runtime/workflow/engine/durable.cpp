// Durable operations: admission (answered by the journal, or allowed to go live), completion, sleep, clock, signals.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/deadline.hpp"
#include "runtime/core/base/id.hpp"
#include "runtime/workflow/engine/connector.hpp"
#include "runtime/workflow/engine/run_impl.hpp"

namespace rille::engine {

namespace {

constexpr std::int64_t signal_poll_ms = 200, signal_poll_simulated_ms = 86'400'000;

std::string args_hash(const Value& args) {
  if (args.is_null()) return std::string(no_args_sha256);
  return sha256_hex(args.to_json()).substr(0, 32);
}

}  // namespace

Result<> RunImpl::check_entry(const Entry& e, const Admitted& slot) const {
  const Operation& op = slot.operation;
  if (e.kind == op.kind && e.name == op.name && e.args_sha256 == slot.args_sha256) return {};
  bool same_call = e.kind == op.kind && e.name == op.name;
  std::string message =
      same_call
          ? fmt::format("{}: {} '{}' at {} has different arguments than in the recorded run (there at {})",
                        slot.fiber->path, op.kind, op.name, op.source, e.source)
          : fmt::format("{}: the script reaches {} '{}' at {}, but the recorded run has {} '{}' at {} at this point",
                        slot.fiber->path, op.kind, op.name, op.source, e.kind, e.name, e.source);
  return make_error(ErrorKind::divergence, message,
                    "nothing was started; a resumed script must make its durable calls in the recorded order. Resume "
                    "with the original script, or start a new run");
}

void RunImpl::diverge(Error error) {
  if (divergence_) return;
  divergence_ = error;
  event("divergence", error_to_value(error));
  // Every fiber unwinds. Fibers that wait for the end of the replay get the error, so no new operation begins.
  scheduler_.ready([this, error] { unwind(error); });
}

// Waits until the recorded completion `seq` is the next to deliver. If the fiber is cancelled, the delivery is skipped.
Async<> RunImpl::wait_turn(FiberRecord& f, std::int64_t seq) {
  Wake<Result<>> turn(scheduler_);
  turns_.insert_or_assign(seq, turn);
  auto registration = token(f).on_cancel([turn](const Error& why) { turn.set(why); });
  Waiting waiting(f);
  scheduler_.poke();
  Result<> r = co_await turn;
  if (!r) {
    turns_.erase(seq);
    passed_.insert(seq);
    scheduler_.poke();
  }
  co_return r;
}

// Waits until the whole record has been delivered; only then may the fiber begin a new operation.
Async<> RunImpl::wait_live(FiberRecord& f) {
  if (divergence_) co_return *divergence_;
  if (replay_.over()) co_return success();
  Wake<Result<>> open(scheduler_);
  gate_.push_back(open);
  auto registration = token(f).on_cancel([open](const Error& why) { open.set(why); });
  Waiting waiting(f);
  scheduler_.poke();
  co_return co_await open;
}

// Waits until it is known whether a release must be carried out now. False: it failed in an earlier process and the
// script went on.
Async<bool> RunImpl::release_gate(FiberRecord& f) {
  if (replay_.over()) co_return true;
  Wake<bool> open(scheduler_);
  release_gates_.push_back(open);
  Waiting waiting(f);
  scheduler_.poke();
  co_return co_await open;
}

void RunImpl::open_gates(const Result<>& how) {
  if (gate_.empty() && release_gates_.empty() && patches_.empty() && turns_.empty()) return;
  for (auto& [seq, wake] : std::exchange(turns_, {})) wake.set(how);  // fibers that wait inside a cleanup
  for (auto& wake : std::exchange(gate_, {})) wake.set(how);
  for (auto& wake : std::exchange(release_gates_, {})) wake.set(true);
  for (auto& [id, wake] : std::exchange(patches_, {})) wake.set(how ? Result<bool>(true) : Result<bool>(how.error()));
}

// All fibers wait: apply a cancel, deliver the next recorded completion, open the gate, or detect that the script
// diverges from its record.
void RunImpl::on_quiet() {
  // Skip recorded entries that no fiber will ask for. A cancelled or failed fiber may have recorded more entries in the
  // earlier process than now: the moment at which the loser of a race is cancelled is not in the record.
  const auto nobody_comes = [this] {
    if (passed_.contains(replay_.next())) return true;
    return unwound_.contains(replay_.next_entry().fiber) && !turns_.contains(replay_.next());
  };
  while (!replay_.over() && nobody_comes()) replay_.advance();
  if (planned_cancel_ && (replay_.over() || (planned_cancel_->recorded && replay_.next() > planned_cancel_->after)))
    return begin_cancel();
  if (!replay_.over()) {
    auto turn = turns_.find(replay_.next());
    if (turn != turns_.end()) {
      Wake<Result<>> wake = turn->second;
      turns_.erase(turn);
      delivered_ = replay_.next();
      replay_.advance();
      scheduler_.deliver([wake] { wake.fire(success()); });
      return;
    }
  }
  if (replay_.over()) return open_gates(success());
  bool all_wait = std::all_of(fibers_.begin(), fibers_.end(), [](const auto& f) {
    return f.second->ended || f.second->body_done || f.second->waiting > 0;
  });
  bool main_runs = fibers_.contains(1) && !fibers_.at(1)->body_done;
  if (divergence_) return open_gates(*divergence_);
  if (!all_wait) return;
  if (!patches_.empty()) {  // the replay is stuck: in the earlier process, this fiber passed without a marker
    Wake<Result<bool>> first = patches_.begin()->second;
    patches_.erase(patches_.begin());
    return first.set(false);
  }
  if (!release_gates_.empty()) {
    for (auto& wake : std::exchange(release_gates_, {})) wake.set(false);
    return;
  }
  const Entry& missed = replay_.next_entry();
  if (missed.kind == "released") {  // the release of a scope that the edited script no longer has
    replay_.advance();
    return scheduler_.poke();
  }
  if (cancel_reason_ || !main_runs) {
    // Cleanup after a cancel need not follow the record: drop the rest of the record and run the cleanup live.
    while (!replay_.over()) replay_.advance();
    scheduler_.poke();
    return open_gates(success());
  }
  diverge(
      make_error(ErrorKind::divergence,
                 fmt::format("{}: the recorded run has {} '{}' at {} next, but the script now waits for something else",
                             missed.fiber, missed.kind, missed.name, missed.source),
                 "nothing was started. Resume with the original script, or start a new run"));
}

std::string RunImpl::next_key(FiberRecord& f, const std::string& name) const {
  return make_key(f.path, name, f.occurrences[name_hash(name)] + 1);
}

Async<Admitted> RunImpl::admit(FiberId id, Operation operation) {
  FiberRecord& f = fiber(id);
  if (const Error* why = cancelled(id)) co_return *why;
  Admitted slot;
  slot.fiber = f.shared_from_this();
  slot.occurrence = ++f.occurrences[name_hash(operation.name)];
  slot.key = make_key(f.path, operation.name, slot.occurrence);
  slot.started_us = now_us();
  slot.operation = std::move(operation);
  if (config_.mode != Mode::durable) co_return slot;

  slot.pos = f.next_pos++;
  slot.args_sha256 = args_hash(slot.operation.args);
  const Entry* entry = replay_.empty() ? nullptr : replay_.find(f.path, slot.pos);
  if (entry) {
    if (Result<> same = check_entry(*entry, slot); !same) {
      diverge(same.error());
      co_return same.error();
    }
    if (entry->completed()) {
      RILLE_CO_CHECK(co_await wait_turn(f, entry->seq));
      slot.recorded.emplace(entry->error ? Result<Value>(*entry->error) : Result<Value>(entry->value));
      co_return slot;
    }
    slot.attempt = static_cast<int>(entry->attempt);
    slot.next_us = entry->next_us;
    slot.started_us = entry->started_us;
    slot.begun = true;
    slot.progress = entry->progress;
    row_of(slot).written = true;
  }
  if (divergence_ || !replay_.over()) RILLE_CO_CHECK(co_await wait_live(f));
  if (paused_) RILLE_CO_CHECK(co_await hold(f));
  if (!followed_) pin_edited();
  if (!f.owed.empty()) RILLE_CO_CHECK(co_await take_owed(slot.fiber));
  co_return slot;
}

// The operation's row for the journal's thread, a copy, because only the loop's thread may use the Admitted.
QueuedEntry& RunImpl::row_of(Admitted& slot) const {
  if (!slot.row) {
    slot.row = std::make_shared<QueuedEntry>();
    QueuedEntry& r = *slot.row;
    r.run = config_.number;
    r.fiber = slot.fiber->path;
    r.kind = slot.operation.kind;
    r.name = slot.operation.name;
    r.args_sha256 = slot.args_sha256;
    r.source = slot.operation.source;
    r.pos = slot.pos;
    r.occurrence = slot.occurrence;
    r.started_us = slot.started_us;
  }
  return *slot.row;
}

// The write that records the begin of an attempt. It does nothing if the operation's completion is queued first.
store::Journal::Write RunImpl::start_write(Admitted& slot) {
  row_of(slot).wanted = slot.attempt;
  std::string progress = slot.progress.is_null() ? std::string() : slot.progress.to_json();
  if (!progress.empty()) count_row(progress.size());
  return [row = slot.row, attempt = slot.attempt, next_us = slot.next_us,
          progress = std::move(progress)](store::Db& db) { return write_begun(db, *row, attempt, next_us, progress); };
}

// Queues the begin for the journal, without waiting; it is on the disk within milliseconds.
void RunImpl::record_start(Admitted& slot) {
  if (config_.mode == Mode::durable) journal_->enqueue(start_write(slot), fence_);
}

Error RunImpl::unrecorded(const Error& why) const {
  std::string remedy = why.hint.empty() ? "mend the cause" : why.hint;
  if (remedy.starts_with("free some space")) remedy = remedy.substr(0, remedy.find(','));
  Error e =
      make_error(why.kind, fmt::format("run {} stops here: its record cannot be written: {}", config_.id, why.message),
                 fmt::format("{}; then: rille resume {}. What was recorded is not lost", remedy, config_.id));
  e.code = "run_paused";
  e.resource = config_.id;
  e.cause = std::make_shared<const Error>(why);
  return e;
}

// Suspends the run because the journal could not store a result. The script must not get that result: it would continue
// past a place that a resume cannot find. Returns only if the fiber is cancelled, with an error.
Async<> RunImpl::not_recorded(std::shared_ptr<FiberRecord> f, Error why) {
  if (const Error* cancel = cancelled(f->id)) co_return *cancel;
  if (config_.mode == Mode::durable) {
    pause(unrecorded(why));
    RILLE_CO_CHECK(co_await hold(*f));
  }
  co_return why;
}

// Counts a recorded result against the limits that the host program has set.
namespace {
constexpr int copies = 3;               // copies of a result on its way: the value, its text, and the journal's
constexpr std::size_t row_bytes = 100;  // size of a journal entry without its texts
constexpr std::int64_t beyond_bytes_max = 64 << 10;  // of a run and its child runs together
}  // namespace

void RunImpl::count_row(std::size_t bytes) {
  if (!limits_.disk) return;
  if (Result<> fits = limits_.disk->take_row(static_cast<std::int64_t>(bytes)); !fits)
    wrote_beyond(bytes, fits.error());
}

void RunImpl::wrote_beyond(std::size_t bytes, const Error& why) {
  const std::int64_t beyond = limits_.disk->add_beyond(static_cast<std::int64_t>(bytes));
  if (beyond <= beyond_bytes_max) return;
  loop_.post(life_.guard([this, why, stops = beyond > 2 * beyond_bytes_max] {
    if (!guest_) return;  // the run has ended, and must not be recorded as cancelled
    if (!cancel_reason_) cancel(why);
    else if (stops) stop_cleanup(why);
  }));
}

Result<std::string> RunImpl::counted_result(const Value& value, MemoryHeld& held) {
  RILLE_TRY(std::string text, counted_json(value, limits_.memory, copies, held));
  if (limits_.disk) RILLE_CHECK(limits_.disk->take_row(static_cast<std::int64_t>(text.size())));
  return text;
}

// Records the outcome, and resumes the fiber once the outcome is on the disk. Fibers are resumed in completion order.
Async<Value> RunImpl::complete(Admitted slot, Result<Value> outcome, store::Journal::Write extra) {
  if (config_.mode != Mode::durable) co_return outcome;
  if (!outcome && of_journal(outcome.error()) && !cancel_reason_) {  // do not record it: a resume would replay it
    Result<> lost = co_await not_recorded(slot.fiber, outcome.error());
    co_return lost.error();
  }
  QueuedEntry& row = row_of(slot);
  MemoryHeld counted;  // counts the result until it is on the disk
  if (outcome) {
    Result<std::string> text = counted_result(*outcome, counted);
    if (text) row.value = std::move(*text);
    else outcome = std::move(text).error();
  }
  if (row.value.size() > store::blob_bytes_max)
    outcome = make_error(ErrorKind::invalid,
                         fmt::format("the result of {} '{}' is {} MB; at most 64 MB are kept", slot.operation.kind,
                                     slot.operation.name, row.value.size() >> 20),
                         "write the result to a file and return the file's name");
  else if (row.value.size() > store::inline_bytes_max) row.blobs = config_.blobs;
  if (!outcome) row.error = error_to_value(outcome.error()).to_json();
  if (limits_.disk) {
    const std::size_t beside = row.error.size() + row.fiber.size() + row.name.size() + row_bytes;
    if (Result<> fits = limits_.disk->take_row(static_cast<std::int64_t>(beside)); !fits) {
      outcome = std::move(fits).error();
      row.value.clear();
      row.blobs.reset();
      row.error = error_to_value(outcome.error()).to_json();
      wrote_beyond(row.error.size() + row.fiber.size() + row.name.size() + row_bytes, outcome.error());
    }
  }
  row.attempt = slot.attempt;
  row.ended_us = now_us();
  row.seq = next_seq_++;
  row.wanted = 0;
  Wake<Result<>> durable(scheduler_);
  store::Journal::Write write = [row = slot.row](store::Db& db) { return write_completed(db, *row); };
  if (extra)
    write = [row = slot.row, extra = std::move(extra)](store::Db& db) -> Result<> {
      RILLE_CHECK(write_completed(db, *row));
      return extra(db);
    };
  auto wake = [this, durable, seq = row.seq](Result<> r) {
    auto shared = std::make_shared<Result<>>(std::move(r));
    scheduler_.deliver([this, durable, seq, shared] {
      if (*shared) delivered_ = seq;
      durable.fire(std::move(*shared));
    });
  };
  journal_->commit_then(std::move(write), fence_, life_.guard(std::move(wake)));
  // If the fiber is cancelled while the outcome is written, it unwinds at once, as it does on replay (wait_turn).
  auto registration = token(*slot.fiber).on_cancel([durable](const Error& why) { durable.set(why); });
  Result<> written = co_await durable;
  // Kind `state` means that another process runs the run, or that a condition inside the transaction failed.
  if (!written && written.error().kind != ErrorKind::state)
    written = co_await not_recorded(slot.fiber, written.error());
  if (!written) co_return written.error();
  co_return outcome;
}

Async<> RunImpl::sleep(FiberId id, std::string name, std::int64_t ms, std::string source) {
  Operation op{"sleep", std::move(name), Value(ms), std::move(source)};
  RILLE_CO_TRY(Admitted slot, co_await admit(id, std::move(op)));
  if (slot.recorded) co_return success();
  if (!slot.next_us) {
    slot.next_us = now_us() + ms * 1000;  // an absolute time, so that a resumed run sleeps only for the rest
    record_start(slot);
  }
  // Wall time may jump; check at least every minute. No clock change makes a sleep longer than `ms`.
  Deadline due(loop_.clock(), std::min(slot.next_us, now_us() + ms * 1000));
  // An unrecorded sleep that is over would complete at once: other fibers and the host program must get their turn.
  if (config_.mode != Mode::durable && due.over()) RILLE_CO_CHECK(co_await sleep_for(loop_, 0, token(*slot.fiber)));
  while (!due.over())
    RILLE_CO_CHECK(co_await sleep_for(loop_, std::min<std::int64_t>(due.left_ms(), 60'000), token(*slot.fiber)));
  Result<Value> done = co_await complete(std::move(slot), Value());
  if (!done) co_return done.error();
  co_return success();
}

Async<double> RunImpl::now(FiberId id, std::string source) {
  RILLE_CO_TRY(Admitted slot, co_await admit(id, Operation{"now", "now", Value(), std::move(source)}));
  Result<Value> v = Value();
  if (slot.recorded) v = std::move(*slot.recorded);
  else v = co_await complete(std::move(slot), Value(static_cast<double>(now_us()) / 1e6));
  if (!v) co_return v.error();
  co_return v->as_number() ? *v->as_number() : 0.0;
}

Async<Value> RunImpl::recorded(FiberId id, Operation operation, std::function<Async<Value>(CancelToken)> live) {
  RILLE_CO_TRY(Admitted slot, co_await admit(id, std::move(operation)));
  if (slot.recorded) co_return std::move(*slot.recorded);
  record_start(slot);
  Result<Value> outcome = co_await live(token(*slot.fiber));
  if (!outcome)
    if (const Error* why = cancelled(id)) co_return *why;
  co_return co_await complete(std::move(slot), std::move(outcome));
}

// Signals wait in the journal's inbox. A signal is taken and recorded as this operation's result in one transaction.
Async<Value> RunImpl::signal(FiberId id, std::string name, std::int64_t timeout_ms, Value otherwise,
                             std::string source) {
  RILLE_CO_TRY(Admitted slot, co_await admit(id, Operation{"signal", name, Value(), std::move(source)}));
  if (slot.recorded) co_return std::move(*slot.recorded);
  if (!journal_)
    co_return make_error(ErrorKind::state,
                         "a signal cannot be received here: only the workflow itself receives signals",
                         "receive the signal in the workflow and pass its value to the call");
  if (!slot.next_us && timeout_ms > 0) slot.next_us = now_us() + timeout_ms * 1000;
  record_start(slot);
  std::optional<Deadline> due;
  if (slot.next_us) due.emplace(loop_.clock(), std::min(slot.next_us, now_us() + timeout_ms * 1000));
  while (true) {
    std::string message_id, payload;
    Result<> looked = journal_->reader().query(
        "SELECT message_id,payload FROM inbox WHERE run=? AND name=? AND taken_by IS NULL ORDER BY at_us,message_id",
        {config_.id, name}, [&](const store::Row& row) {
          if (!message_id.empty() || taking_.contains(row.text(0))) return;
          message_id = row.text(0);
          payload = row.text(1);
        });
    if (!looked) RILLE_CO_CHECK(co_await not_recorded(slot.fiber, looked.error()));
    if (!message_id.empty()) {
      // No other fiber of this run may choose this signal before the reader connection shows it as taken.
      taking_.insert(message_id);
      RILLE_CO_TRY(Value message, Value::from_json(payload));
      store::Journal::Write take = [run = config_.id, name, message_id, key = slot.key](store::Db& db) -> Result<> {
        RILLE_CHECK(db.run("UPDATE inbox SET taken_by=? WHERE run=? AND name=? AND message_id=? AND taken_by IS NULL",
                           {key, run, name, message_id}));
        if (db.changes() == 1) return {};
        return make_error(ErrorKind::state,
                          fmt::format("message {} of signal '{}' has been taken by another reader", message_id, name),
                          "a message goes to one reader only: call rille.signal again for the next one");
      };
      if (config_.mode != Mode::durable) {
        Result<> taken = co_await journal_->commit(take, fence());
        taking_.erase(message_id);
        if (!taken) co_return taken.error();
        co_return message;
      }
      Result<Value> taken = co_await complete(std::move(slot), std::move(message), take);
      // A cancelled fiber does not wait for the commit; the id then stays in taking_.
      if (!cancelled(id)) taking_.erase(message_id);
      co_return taken;
    }
    if (due && due->over()) co_return co_await complete(std::move(slot), std::move(otherwise));
    std::int64_t rest_ms = due ? due->left_ms() : signal_poll_simulated_ms;
    if (connector_->real_time()) rest_ms = signal_poll_ms;  // in a simulation no signal arrives
    RILLE_CO_CHECK(co_await sleep_for(loop_, rest_ms, token(*slot.fiber)));
  }
}

}  // namespace rille::engine
