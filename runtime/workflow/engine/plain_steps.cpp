// The fast path of steps: for a step without options that is not replayed and succeeds. It leaves the same record as
// the slow path (step_begin and step_end), so that a step begun on one path can be resumed on the other. PlainRow
// objects are reused, so that after the first steps this code allocates no memory.
#include <charconv>

#include "runtime/workflow/engine/run_impl.hpp"

namespace rille::engine {

namespace {
constexpr std::size_t spare_rows_max = 256;
}  // namespace

struct RunImpl::PlainRow final : store::Journal::Queued {
  PlainRow(RunImpl& r) : Queued(r.fence_), run(r), life(r.life_.watch()) {}
  Result<> write(store::Db& db) override { return write_plain(db, entry); }
  void written(std::unique_ptr<Queued> self, Result<> outcome) override {
    if (life.ended()) return;
    result = std::move(outcome);
    run.plain_ready_.push_back(std::move(self));
    run.scheduler_.deliver([to = &run] { to->plain_deliver(); });
  }
  RunImpl& run;
  Lifetime::Watch life;  // of the run
  FiberId fiber = 0;
  QueuedEntry entry;
  Result<> result;
};

bool RunImpl::plain_begin(FiberId id, std::string_view name, std::string_view source, std::uint64_t& seed) {
  if (config_.mode != Mode::durable || divergence_ || paused_ || !replay_.over() || !followed_) return false;
  auto it = fibers_.find(id);
  if (it == fibers_.end() || !it->second->scope) return false;
  FiberRecord& f = *it->second;
  if (cancelled(id)) return false;
  if (!f.owed.empty()) return false;  // the fiber must first take its pool permits again
  PlainStep& step = f.plain;
  step.name = name;
  step.source = source;
  step.pos = f.next_pos;
  if (!replay_.empty() && replay_.find(f.path, step.pos)) return false;  // the step began in an earlier process
  f.next_pos += 1;
  step.occurrence = ++f.occurrences[name_hash(name)];
  step.started_us = now_us();
  step.seq = 0;
  step.ticket = 0;
  if (!f.plain_seed) f.plain_seed = mix_seed(mix_seed(this->seed(id), f.path), "/");
  char digits[24] = "#";
  char* end = std::to_chars(digits + 1, digits + 21, step.occurrence).ptr;
  *end++ = '#';
  *end++ = '1';
  std::string room;
  seed = mix_seed(mix_seed(*f.plain_seed, name_in_key(name, room)), {digits, static_cast<std::size_t>(end - digits)});
  return true;
}

// Moves the fiber's current step to the slow path and returns its ticket.
StepTicket RunImpl::plain_ticket(FiberId id) {
  FiberRecord& f = fiber(id);
  PlainStep& step = f.plain;
  StepTicket ticket;
  ticket.key = make_key(f.path, step.name, step.occurrence);
  if (!step.ticket) {
    Admitted slot;
    slot.fiber = f.shared_from_this();
    slot.pos = step.pos;
    slot.occurrence = step.occurrence;
    slot.key = ticket.key;
    slot.args_sha256 = no_args_sha256;
    slot.operation = Operation{"step", step.name, Value(), step.source};
    slot.started_us = step.started_us;
    step.ticket = next_step_++;
    StepState& state = steps_[step.ticket];
    state.fiber = id;
    state.since_us = slot.started_us;
    state.slot = std::move(slot);
    state.body_running = true;
    ++bodies_;
    record_start(state.slot);
  }
  ticket.entry = step.ticket;
  return ticket;
}

void RunImpl::plain_waits(FiberId id) { (void)plain_ticket(id); }

bool RunImpl::plain_end(FiberId id, const Value& result) {
  FiberRecord& f = fiber(id);
  PlainStep& step = f.plain;
  if (step.ticket || cancelled(id)) return false;
  std::unique_ptr<store::Journal::Queued> queued;
  PlainRow* row = nullptr;
  if (plain_spare_.empty()) {
    queued = std::make_unique<PlainRow>(*this);
    row = static_cast<PlainRow*>(queued.get());
    row->entry.run = config_.number;
  } else {
    queued = std::move(plain_spare_.back());
    row = static_cast<PlainRow*>(queued.get());
    plain_spare_.pop_back();
  }
  QueuedEntry& e = row->entry;
  e.value = result.to_json();
  if (e.value.size() > store::inline_bytes_max || limits_.disk) return false;
  row->fiber = id;
  e.fiber = f.path;
  e.name = step.name;
  e.source = step.source;
  e.pos = step.pos;
  e.occurrence = step.occurrence;
  e.started_us = step.started_us;
  e.ended_us = now_us();
  e.seq = step.seq = next_seq_++;
  journal_->commit_queued(std::move(queued));
  return true;
}

void RunImpl::plain_deliver() {
  std::unique_ptr<store::Journal::Queued> queued = std::move(plain_ready_[plain_next_++]);
  if (plain_next_ == plain_ready_.size()) {
    plain_ready_.clear();
    plain_next_ = 0;
  }
  auto* row = static_cast<PlainRow*>(queued.get());
  FiberId id = row->fiber;
  std::int64_t seq = row->entry.seq;
  Result<> result = std::move(row->result);
  if (result) delivered_ = seq;
  if (plain_spare_.size() < spare_rows_max) plain_spare_.push_back(std::move(queued));
  // If the fiber was cancelled meanwhile, it has continued without the outcome, as it does on replay.
  auto it = fibers_.find(id);
  if (it == fibers_.end() || it->second->plain.seq != seq || !guest_) return;
  if (!result && result.error().kind != ErrorKind::state)
    return loop_.spawn(plain_unrecorded(it->second, seq, result.error()));
  it->second->plain.seq = 0;
  guest_->plain_done(id, result ? nullptr : &result.error());
}

// The outcome could not be recorded: suspends the run. If the fiber is cancelled, the cancel itself wakes the fiber.
Task<void> RunImpl::plain_unrecorded(std::shared_ptr<FiberRecord> f, std::int64_t seq, Error why) {
  const auto life = life_.watch();
  Result<> lost = co_await not_recorded(f, why);
  if (life.ended() || cancelled(f->id) || f->plain.seq != seq || !guest_) co_return;
  f->plain.seq = 0;
  guest_->plain_done(f->id, &lost.error());
}

}  // namespace rille::engine
