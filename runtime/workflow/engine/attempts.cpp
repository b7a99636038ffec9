// The attempts of a step: their number, their time limits, and what follows the last one. In the row of a begun step,
// next_us = 0 means that an attempt was running; otherwise next_us is when the next attempt is due. The column
// `progress` holds what the next process needs. Each resume from a pause grants a new set of attempts_max attempts.
//   last: the last heartbeat; crashes: how often a process died in the body; base: attempts used before the current
//   set; since_us: start of the current set; paused: the current set is used up.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/core/base/id.hpp"
#include "runtime/workflow/engine/run_impl.hpp"

namespace rille::engine {

namespace {

constexpr std::int64_t look_at_wall_ms = 60'000;  // longest timer for a wall-time deadline: the wall clock may be set
constexpr std::int64_t rest_within_ms = 5000;     // how long a fiber may compute after a recorded cancel
constexpr const char* attempts_used_up = "attempts_used_up";

Error with_code(Error e, const char* code) {
  e.code = code;
  return e;
}

Error too_long(const StepState& step, const char* what, std::int64_t ms) {
  return with_code(make_error(ErrorKind::timeout,
                              fmt::format("step '{}' {} {}", step.slot.operation.name, what, format_duration_ms(ms)),
                              "the step's options timeout, heartbeat_timeout and total_timeout set these limits"),
                   "step_timeout");
}

int attempts_used(const StepState& step) {
  const Value& p = step.slot.progress;
  std::int64_t crashes = step.options.retry.counts_crashes ? 0 : p.integer("crashes");
  return static_cast<int>(step.slot.attempt - p.integer("base") - crashes);
}

}  // namespace

// Continues a step that an earlier process began. If this returns an error, the step ends with it.
Result<> RunImpl::take_over(StepState& step) {
  Admitted& slot = step.slot;
  step.since_us = slot.progress.integer("since_us", slot.started_us);
  if (slot.progress.boolean("paused")) {
    slot.progress.set("paused", false).set("base", slot.attempt - 1).set("since_us", now_us());
    step.since_us = now_us();
    slot.next_us = 0;
    return {};
  }
  if (slot.next_us) return {};  // the earlier process died between two attempts
  bool once = step.options.effect == Effect::once;
  if (once && !step.options.probes) return uncertain(slot);
  if (step.options.crashes_max < 0 || !config_.died) return {};
  std::int64_t crashes = slot.progress.integer("crashes") + 1;
  slot.progress.set("crashes", crashes);
  if (!once) slot.attempt += 1;  // for `once`, the probe decides about another attempt
  if (crashes > step.options.crashes_max)
    return with_code(
        make_error(ErrorKind::state,
                   fmt::format("step '{}' has crashed the process {} times", slot.operation.name, crashes),
                   "find out why the step's body crashes; the step's option crashes_max sets how often it may"),
        "step_poisoned");
  if (!once && step.options.retry.counts_crashes && attempts_used(step) > step.options.retry.attempts_max)
    return with_code(make_error(ErrorKind::state,
                                fmt::format("step '{}' has used all its {} attempts; the process died in the last one",
                                            slot.operation.name, step.options.retry.attempts_max),
                                "find out why the step's body ends the process"),
                     attempts_used_up);
  return {};
}

Result<> RunImpl::not_too_late(const StepState& step) const {
  std::int64_t total_ms = step.options.total_timeout_ms;
  if (total_ms <= 0 || now_us() < step.since_us + total_ms * 1000) return {};
  return too_long(step, "took longer, in all attempts together, than", total_ms);
}

// Records that the attempt begins. If the step's options require it, waits until the record is on the disk.
Async<> RunImpl::begin_attempt(std::uint64_t entry) {
  StepState& step = steps_.at(entry);
  step.slot.next_us = 0;
  step.body_running = true;
  ++bodies_;
  bool durable = step.options.effect == Effect::once || step.options.crashes_max >= 0;
  if (durable && config_.mode == Mode::durable) {
    Result<> written = co_await journal_->commit(start_write(step.slot), fence());
    if (const Error* why = cancelled(step.fiber); written && why) written = *why;
    if (!written) {
      std::shared_ptr<FiberRecord> f = step.slot.fiber;
      (void)end_attempt(step);
      steps_.erase(entry);
      if (of_journal(written.error())) co_return co_await not_recorded(f, written.error());
      co_return written;
    }
  } else if (step.options.effect == Effect::idempotent) {
    record_start(step.slot);
  }
  if (step.options.limited()) {
    step.scope = scope_enter(step.fiber, "step");
    scope(step.scope)->transparent = true;
    std::int64_t now = monotonic_ms();
    step.due_ms = step.options.timeout_ms ? now + step.options.timeout_ms : INT64_MAX;
    if (step.options.total_timeout_ms)
      step.total_due_ms =
          now + std::max<std::int64_t>(0, (step.since_us - now_us()) / 1000 + step.options.total_timeout_ms);
    step.silent_ms = step.options.heartbeat_timeout_ms ? now + step.options.heartbeat_timeout_ms : 0;
    watch(entry);
  }
  co_return success();
}

// Cancels a step's body whose time is over. Returns the milliseconds until the next check; -1: no check is needed.
std::int64_t RunImpl::look_at(StepState& step) {
  if (!step.scope || step.late) return -1;
  std::int64_t now = monotonic_ms(), left = step.due_ms - now;
  if (left <= 0) step.late = too_long(step, "took longer than", step.options.timeout_ms).with_retry();
  if (step.silent_ms) {
    left = std::min(left, step.silent_ms - now);
    if (step.silent_ms <= now)
      step.late = too_long(step, "gave no heartbeat for", step.options.heartbeat_timeout_ms).with_retry();
  }
  if (step.total_due_ms) {
    left = std::min(left, step.total_due_ms - now);
    if (step.total_due_ms <= now)
      step.late = too_long(step, "took longer, in all attempts together, than", step.options.total_timeout_ms);
  }
  if (!step.late) return left;
  scope(step.scope)->source->cancel(*step.late);
  return -1;
}

void RunImpl::watch(std::uint64_t entry) {
  auto it = steps_.find(entry);
  std::int64_t left = it == steps_.end() ? -1 : look_at(it->second);
  if (left < 0) return;
  // Posted to the loop: the running timer must not destroy itself.
  it->second.limit =
      std::make_unique<Timer>(loop_, left, [this, entry] { loop_.post(life_.guard([this, entry] { watch(entry); })); });
}

// Returns why the body was cancelled, if it timed out.
std::optional<Error> RunImpl::end_attempt(StepState& step) {
  if (step.body_running) --bodies_;
  step.body_running = false;
  if (step.scope) scope_leave(step.fiber, std::exchange(step.scope, 0));
  step.limit.reset();
  if (paused_) suspend_when_calm();
  return std::exchange(step.late, std::nullopt);
}

bool RunImpl::is_transient(const StepState& step, const Error& failure) {
  if (step.options.effect == Effect::once || failure.kind == ErrorKind::cancelled) return false;
  if (failure.code == "step_timeout") return failure.retryable;
  return failure.retryable || step.options.retry.any_error;
}

// The pause before the next attempt: random up to the back-off, seeded so that a resume gets the same pause. nullopt:
// no attempt is left.
std::optional<std::int64_t> RunImpl::next_pause_ms(const StepState& step, const Error& failure) const {
  const RetryPolicy& retry = step.options.retry;
  int used = attempts_used(step);
  if (used >= retry.attempts_max) return std::nullopt;
  double full = std::min<double>(static_cast<double>(retry.cap_ms),
                                 static_cast<double>(retry.initial_ms) * std::pow(retry.factor, used - 1));
  std::uint64_t dice =
      std::stoull(derive_hex({"retry", config_.id, step.slot.key, std::to_string(step.slot.attempt)}, 12), nullptr, 16);
  auto delay = static_cast<std::int64_t>(full * (static_cast<double>(dice) / static_cast<double>(1ULL << 48)));
  if (failure.retry_after_ms > delay) delay = std::min<std::int64_t>(failure.retry_after_ms, retry.cap_ms);
  std::int64_t elapsed_ms = (now_us() - step.since_us) / 1000 + delay;
  if (retry.elapsed_ms_max && elapsed_ms > retry.elapsed_ms_max) return std::nullopt;
  if (step.options.total_timeout_ms && elapsed_ms >= step.options.total_timeout_ms) return std::nullopt;
  return delay;
}

// No attempt is left: the failure is the step's outcome, or the run pauses until it is resumed.
Async<StepOutcome> RunImpl::give_up(std::uint64_t entry, Error failure, bool pauses) {
  if (!pauses || config_.mode != Mode::durable) co_return co_await complete_step(entry, std::move(failure));
  StepState& step = steps_.at(entry);
  Admitted& slot = step.slot;
  // Counts up to the next attempt's number; after a crash, take_over has already done so.
  if (failure.code != attempts_used_up) slot.attempt += 1;
  Error why = make_error(ErrorKind::state,
                         fmt::format("run {} is paused: step '{}' has used all its attempts: {}", config_.id,
                                     slot.operation.name, failure.message),
                         fmt::format("remove the cause, then: rille resume {}", config_.id));
  why.code = "run_paused";
  why.resource = config_.id;
  why.cause = std::make_shared<const Error>(failure);
  slot.progress.set("paused", true);
  slot.next_us = now_us();
  Result<> held = co_await journal_->commit(start_write(slot), fence());
  if (!held && of_journal(held.error())) {
    held = co_await not_recorded(slot.fiber, held.error());
  } else if (held) {
    pause(std::move(why));
    held = co_await hold(*slot.fiber);
    if (held) co_return co_await complete_step(entry, std::move(failure));  // the run was cancelled: fail the step
  }
  steps_.erase(entry);
  co_return held.error();
}

// --- Pausing and cancelling the whole run

void RunImpl::pause(Error why) {
  if (paused_ || cancel_reason_) return;
  paused_ = std::move(why);
  event("paused", error_to_value(*paused_));
  suspend_when_calm();
}

// Keeps an operation of a paused run from beginning. Returns only if the fiber is cancelled (an error) or the run is
// cancelled (success); otherwise waits until the process ends.
Async<> RunImpl::hold(FiberRecord& f) {
  if (const Error* why = cancelled(f.id)) co_return *why;
  if (!paused_) co_return success();
  Wake<Result<>> never(scheduler_);
  held_.push_back(never);
  auto registration = token(f).on_cancel([never](const Error& why) { never.set(why); });
  Waiting waiting(f);
  scheduler_.poke();
  co_return co_await never;
}

// A paused run begins no operation. It is suspended once the last step body has ended and its outcome is queued.
void RunImpl::suspend_when_calm() {
  loop_.post(life_.guard([this] { suspend_now(); }));
}

void RunImpl::suspend_now() {
  if (bodies_ > 0 || suspended_ || !paused_ || cancel_reason_ || planned_cancel_) return;
  suspended_ = true;
  journal_->commit_then(
      [run = config_.id, at = now_us()](store::Db& db) {
        return db.run("UPDATE runs SET state='suspended', updated_us=?, pid=0 WHERE id=?", {at, run});
      },
      fence_, life_.guard([this](const Result<>& written) {
        // If the state `suspended` cannot be written, the next process treats the run as one whose process died.
        if (!written) paused_ = of_journal(written.error()) ? unrecorded(written.error()) : written.error();
        if (ended_) ended_->set(true);
      }));
}

void RunImpl::watch_deadline() {
  if (!config_.deadline_us || cancel_reason_ || planned_cancel_) return;
  if (!deadline_) deadline_.emplace(loop_.clock(), config_.deadline_us);
  if (deadline_->over()) {
    Error why = make_error(ErrorKind::timeout,
                           fmt::format("the run's deadline, {}, has passed", format_utc(config_.deadline_us)),
                           "start it anew with a later deadline: `rille run --deadline` sets it");
    return cancel(with_code(std::move(why), "run_deadline"));
  }
  std::int64_t look_ms = std::min(deadline_->left_ms(), look_at_wall_ms);
  deadline_timer_ =
      std::make_unique<Timer>(loop_, look_ms, [this] { loop_.post(life_.guard([this] { watch_deadline(); })); });
}

std::int64_t RunImpl::look_at_clock() {
  std::int64_t next = -1;
  auto sooner = [&](std::int64_t ms) {
    if (ms >= 0 && (next < 0 || ms < next)) next = ms;
  };
  for (auto& [entry, step] : steps_) sooner(look_at(step));
  if (deadline_ && !cancel_reason_ && !planned_cancel_) {
    if (deadline_->over()) watch_deadline();
    else sooner(deadline_->left_ms());
  }
  sooner(look_at_cancel());
  return next;
}

// If the record contains a cancel, fibers continue until the place where it took effect in the earlier process. A fiber
// that computes for rest_within_ms without a delivery is cancelled where it is.
std::int64_t RunImpl::look_at_cancel() {
  if (!planned_cancel_ || !planned_cancel_->recorded) return -1;
  const std::int64_t now_ns = loop_.clock().monotonic_ns();
  if (std::exchange(computes_after_, delivered_) != delivered_) computes_since_ns_ = now_ns;
  const std::int64_t left_ms = rest_within_ms - (now_ns - computes_since_ns_) / 1'000'000;
  if (left_ms > 0) return left_ms;
  cancel_now();
  return planned_cancel_ ? rest_within_ms : -1;
}

}  // namespace rille::engine
