// Steps. The body runs in the guest, between step_begin and step_end; this file decides whether the body runs, and
// whether it runs again. attempts.cpp counts, limits and repeats the attempts.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/id.hpp"
#include "runtime/workflow/engine/run_impl.hpp"

namespace rille::engine {

namespace {

constexpr std::int64_t heartbeat_rows_us = 1'000'000;
constexpr std::size_t heartbeat_bytes_max = 64 << 10;

StepOutcome again(const Admitted& slot) {
  StepOutcome out;
  out.again = true;
  out.attempt = slot.attempt;
  out.last = slot.progress["last"];
  return out;
}

}  // namespace

std::string step_token(const std::string& run, const std::string& key) { return derive_uuid({"step", run, key}); }

Error RunImpl::uncertain(const Admitted& slot) const {
  std::string token = step_token(config_.id, slot.key);
  Error e = make_error(
      ErrorKind::state,
      fmt::format("step '{}' began at {} and was interrupted: whether it took effect is not known (its token is {})",
                  slot.operation.name, format_utc(slot.started_us), token),
      "find out by hand whether it took effect; the option `probe` lets a step find out itself");
  e.code = "step_uncertain";
  e.resource = token;
  return e;
}

Async<StepTicket> RunImpl::step_begin(FiberId id, Operation operation, StepOptions options) {
  operation.kind = "step";
  RILLE_CO_TRY(Admitted slot, co_await admit(id, std::move(operation)));
  StepTicket ticket;
  ticket.key = slot.key;
  if (slot.recorded) {
    ticket.recorded = std::move(slot.recorded);
    co_return ticket;
  }
  std::uint64_t entry = ticket.entry = next_step_++;
  StepState& step = steps_[entry];
  bool cut_off = slot.begun && slot.next_us == 0;
  step.slot = std::move(slot);
  step.options = options;
  step.fiber = id;
  step.since_us = step.slot.started_us;
  Result<> goes_on;
  if (step.slot.begun) goes_on = take_over(step);
  // If the process died during the pause before an attempt, wait for the rest of the pause.
  if (goes_on && step.slot.next_us > now_us()) {
    goes_on = co_await sleep_for(loop_, (step.slot.next_us - now_us()) / 1000, token(*step.slot.fiber));
    if (!goes_on) {
      steps_.erase(entry);
      co_return goes_on.error();
    }
  }
  if (goes_on) goes_on = not_too_late(step);
  if (!goes_on) {
    bool pauses = options.retry.pauses && goes_on.error().code == "attempts_used_up";
    RILLE_CO_TRY(StepOutcome out, co_await give_up(entry, goes_on.error(), pauses));
    ticket.recorded.emplace(std::move(out.result));
    co_return ticket;
  }
  ticket.probe = cut_off && options.effect == Effect::once;
  RILLE_CO_CHECK(co_await begin_attempt(entry));
  ticket.attempt = step.slot.attempt;
  ticket.last = step.slot.progress["last"];
  co_return ticket;
}

Async<StepOutcome> RunImpl::step_probed(FiberId id, StepTicket ticket, Result<ProbeAnswer> answer) {
  StepState& step = steps_.at(ticket.entry);
  std::optional<Error> late = end_attempt(step);
  if (const Error* why = cancelled(id)) {
    Error reason = *why;
    steps_.erase(ticket.entry);
    co_return reason;
  }
  if (answer && !answer->done) {  // the probe found no effect: run the body again
    step.slot.attempt += 1;
    RILLE_CO_CHECK(co_await begin_attempt(ticket.entry));
    co_return again(step.slot);
  }
  if (answer) co_return co_await complete_step(ticket.entry, std::move(*answer->done));
  Error why = uncertain(step.slot);
  why.hint = "the step's probe failed, too: find out by hand whether the step took effect";
  why.cause = std::make_shared<const Error>(late ? *late : answer.error());
  co_return co_await complete_step(ticket.entry, std::move(why));
}

Async<StepOutcome> RunImpl::step_end(FiberId id, StepTicket ticket, Result<Value> body) {
  StepState& step = steps_.at(ticket.entry);
  std::optional<Error> late = end_attempt(step);
  if (body) co_return co_await complete_step(ticket.entry, std::move(body));
  // If the body failed because the fiber is cancelled, nothing is recorded, and the body runs again on a resume.
  if (const Error* why = cancelled(id)) {
    Error reason = *why;
    steps_.erase(ticket.entry);
    co_return reason;
  }
  Error failure = late ? std::move(*late) : body.error();
  if (!is_transient(step, failure)) co_return co_await complete_step(ticket.entry, std::move(failure));
  std::optional<std::int64_t> delay = next_pause_ms(step, failure);
  if (!delay) co_return co_await give_up(ticket.entry, std::move(failure), step.options.retry.pauses);
  Admitted& slot = step.slot;
  slot.attempt += 1;
  slot.next_us = now_us() + *delay * 1000;
  Value note;
  note.set("step", slot.key).set("attempt", slot.attempt).set("delay_ms", *delay).set("error", failure.summary());
  event("retry", std::move(note));
  if (step.options.effect != Effect::pure) record_start(slot);
  Result<> paused = co_await sleep_for(loop_, *delay, token(*slot.fiber));
  if (paused && paused_) paused = co_await hold(*slot.fiber);
  if (!paused) {
    steps_.erase(ticket.entry);
    co_return paused.error();
  }
  RILLE_CO_CHECK(co_await begin_attempt(ticket.entry));
  co_return again(slot);
}

Async<StepOutcome> RunImpl::complete_step(std::uint64_t entry, Result<Value> outcome) {
  Admitted slot = std::move(steps_.extract(entry).mapped().slot);
  StepOutcome out;
  out.attempt = slot.attempt;
  out.result = co_await complete(std::move(slot), std::move(outcome));
  co_return out;
}

Result<> RunImpl::step_heartbeat(FiberId id, const StepTicket& ticket, Value progress) {
  auto it = steps_.find(ticket.entry);
  if (it == steps_.end())
    return make_error(ErrorKind::state, fmt::format("the step '{}' has ended", ticket.key),
                      "call ctx:heartbeat only inside the body of the step");
  if (const Error* why = cancelled(id)) return *why;
  if (std::size_t size = progress.to_json().size(); size > heartbeat_bytes_max)
    return make_error(ErrorKind::invalid,
                      fmt::format("the heartbeat of step '{}' has {} bytes; at most {} are kept", ticket.key, size,
                                  heartbeat_bytes_max),
                      "write large data to a file, and put the file's name into the heartbeat");
  StepState& step = it->second;
  step.slot.progress.set("last", std::move(progress));
  if (step.silent_ms) step.silent_ms = monotonic_ms() + step.options.heartbeat_timeout_ms;
  if (step.heartbeat_waits) return {};
  auto write = [this, &step] {
    step.heartbeat_us = now_us();
    step.heartbeat_waits = false;
    record_start(step.slot);
  };
  std::int64_t due_us = step.heartbeat_us + heartbeat_rows_us - now_us();
  step.heartbeat_waits = due_us > 0;
  if (step.heartbeat_waits) step.heartbeat = std::make_unique<Timer>(loop_, due_us / 1000 + 1, write);
  else write();
  return {};
}

}  // namespace rille::engine
