// Fibers, scopes and cancellation of a run.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/id.hpp"
#include "runtime/workflow/engine/run_impl.hpp"

namespace rille::engine {

std::uint64_t name_hash(std::string_view name) {
  std::uint64_t h = 0xcbf29ce484222325ULL;
  for (char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return h;
}

ScopeRecord& RunImpl::new_scope(std::string name, ScopeRecord* parent, FiberId owner) {
  auto record = std::make_unique<ScopeRecord>();
  ScopeRecord& s = *record;
  s.id = next_scope_++;
  s.name = std::move(name);
  s.parent = parent;
  s.owner = owner;
  // Work begun while a scope unwinds (a defer that opens a scope) is not cancelled with that scope.
  bool sheltered = parent && parent->shielded;
  s.source = parent ? std::make_unique<CancelSource>(sheltered ? cleanup_.token() : parent->source->token())
                    : std::make_unique<CancelSource>();
  s.interrupt = s.source->token().on_cancel([this, owner](const Error& why) {
    // Suspended operations end by their cancel tokens; this interrupts code of the fiber that runs without suspending.
    scheduler_.ready([this, owner, why] {
      auto it = fibers_.find(owner);
      if (guest_ && it != fibers_.end() && !it->second->body_done && cancelled(owner)) guest_->cancel(owner, why);
    });
  });
  scopes_.emplace(s.id, std::move(record));
  return s;
}

FiberRecord& RunImpl::new_fiber(std::string path, ScopeRecord* parent) {
  auto record = std::make_shared<FiberRecord>();
  FiberRecord& f = *record;
  f.id = next_fiber_++;
  f.path = std::move(path);
  f.root = f.scope = &new_scope(f.path, parent, f.id);
  fibers_.emplace(f.id, std::move(record));
  return f;
}

void RunImpl::drop_scope(ScopeId id) {
  if (ScopeRecord* s = scope(id)) {
    s->interrupt = {};
    for (FiberId child : s->failed) failures_.erase(child);
  }
  scopes_.erase(id);
}

CancelToken RunImpl::token(const FiberRecord& f) const {
  return !f.scope || f.scope->shielded ? cleanup_.token() : f.scope->source->token();
}

CancelToken RunImpl::cancel_token(FiberId id) const {
  const auto it = fibers_.find(id);
  return it == fibers_.end() ? cleanup_.token() : token(*it->second);
}

ScopeRecord& RunImpl::owner(FiberRecord& f) {
  ScopeRecord* s = f.scope;
  while (s->transparent) s = s->parent;
  return *s;
}

const Error* RunImpl::cancelled(FiberId id) const {
  auto it = fibers_.find(id);
  if (it == fibers_.end() || !it->second->scope) return nullptr;
  if (cleanup_.cancelled()) return &cleanup_.token().reason();
  const ScopeRecord& s = *it->second->scope;
  return !s.shielded && s.source->cancelled() ? &s.source->token().reason() : nullptr;
}

std::uint64_t RunImpl::seed(FiberId id) const {
  const FiberRecord& f = fiber(id);
  const std::string& of = config_.seed.empty() ? config_.id : config_.seed;
  if (!f.seed) f.seed = std::stoull(derive_hex({"random", of, f.path}, 16), nullptr, 16);
  return *f.seed;
}

std::string RunImpl::path(FiberId id) const {
  auto it = fibers_.find(id);
  return it == fibers_.end() ? std::string() : it->second->path;
}

ScopeId RunImpl::root_scope(FiberId id) const { return fiber(id).root->id; }

bool RunImpl::ended(FiberId id) const {
  auto it = fibers_.find(id);
  return it == fibers_.end() || it->second->ended;
}

namespace {
constexpr std::size_t path_bytes_max = 4096;
// Bytes counted for a fiber: about three times the memory of its records, waits and wake-ups. This also limits the
// number of fibers to unwind when a time limit ends the run.
constexpr std::size_t fiber_bytes = 16 << 10;
}  // namespace

Result<FiberId> RunImpl::spawn(FiberId parent, std::string name, FunctionRef function, Value argument) {
  FiberRecord& p = fiber(parent);
  if (const Error* why = cancelled(parent)) return *why;
  if (fibers_.size() >= 100'000)
    return make_error(ErrorKind::state, "a run can have at most 100000 fibers (concurrent tasks) at a time",
                      "use rille.map with a limit");
  // Each level's records contain the whole path, so endless nesting would take memory proportional to the square of its
  // depth.
  if (p.path.size() > path_bytes_max)
    return make_error(ErrorKind::state,
                      fmt::format("fibers are nested too deeply: the path of this one has more than {} bytes, {}..",
                                  path_bytes_max, p.path.substr(0, 40)),
                      "spawn fibers side by side from one fiber, or loop instead of spawning from the spawned");
  RILLE_TRY(MemoryHeld held, MemoryHeld::take(limits_.memory, MemoryUse::Part::fibers,
                                              static_cast<std::int64_t>(fiber_bytes + 2 * p.path.size())));
  std::int64_t n = ++p.child_names[name_hash(name)];
  FiberRecord& child = new_fiber(make_key(p.path, name, n), &owner(p));
  child.counted = std::move(held);
  owner(p).children.insert(child.id);
  FiberId id = child.id;
  scheduler_.ready([this, id, function, argument = std::move(argument)] { guest_->start(id, function, argument); });
  return id;
}

Async<> RunImpl::join(FiberId self, FiberId child) {
  FiberRecord& f = fiber(self);
  if (!ended(child)) {
    Wake<bool> done(scheduler_);
    fiber(child).joiners.push_back(done);
    auto registration = token(f).on_cancel([done](const Error&) { done.set(false); });
    Waiting waiting(f);
    scheduler_.poke();
    bool joined = co_await done;
    if (!joined && !ended(child)) {
      if (const Error* why = cancelled(self)) co_return *why;
    }
  }
  if (const Error* why = cancelled(self)) co_return *why;
  auto failed = failures_.find(child);
  if (failed != failures_.end()) co_return failed->second.error;
  co_return success();
}

Async<std::size_t> RunImpl::join_any(FiberId self, std::vector<FiberId> children, bool journaled) {
  if (!journaled || config_.mode != Mode::durable) co_return co_await first_ended(self, std::move(children));
  std::string source = guest_ ? guest_->where(self) : std::string();
  Operation op("race", "race winner", Value(static_cast<std::int64_t>(children.size())), std::move(source));
  RILLE_CO_TRY(Admitted slot, co_await admit(self, std::move(op)));
  Result<Value> winner = Value();
  if (slot.recorded) {
    winner = std::move(*slot.recorded);
  } else {
    RILLE_CO_TRY(std::size_t first, co_await first_ended(self, children));
    winner = co_await complete(std::move(slot), Value(static_cast<std::int64_t>(first)));
  }
  if (!winner) co_return winner.error();
  auto index = static_cast<std::size_t>(winner->as_number() ? *winner->as_number() : 0);
  co_return std::min(index, children.size() - 1);
}

Async<std::size_t> RunImpl::first_ended(FiberId self, std::vector<FiberId> children) {
  FiberRecord& f = fiber(self);
  for (std::size_t i = 0; i < children.size(); ++i)
    if (ended(children[i])) co_return i;
  // All children share one wake-up; the loop below finds which child has ended.
  Wake<bool> any(scheduler_);
  for (FiberId child : children) fiber(child).joiners.push_back(any);
  auto registration = token(f).on_cancel([any](const Error&) { any.set(false); });
  {
    Waiting waiting(f);
    scheduler_.poke();
    co_await any;
  }
  if (const Error* why = cancelled(self)) co_return *why;
  for (std::size_t i = 0; i < children.size(); ++i)
    if (ended(children[i])) co_return i;
  co_return make_error(ErrorKind::internal, "join_any woke without an ended fiber",
                       "this is a bug of Rille: please report it");
}

void RunImpl::cancel_fiber(FiberId child, Error reason) {
  auto it = fibers_.find(child);
  if (it == fibers_.end() || it->second->body_done) return;
  it->second->root->source->cancel(std::move(reason));
}

// The cancel takes effect when every fiber waits, between two completions, after the whole record has been delivered,
// so that a resumed run can find the same place again.
void RunImpl::cancel(Error reason) {
  if (cancel_reason_ || planned_cancel_) return;
  planned_cancel_ = PlannedCancel{0, std::move(reason), false};
  if (config_.mode != Mode::durable || !guest_) return begin_cancel();
  scheduler_.ready([] {});
}

// Cancels the run now, because a fiber computes without ever waiting.
void RunImpl::cancel_now() {
  bool reached = planned_cancel_ && (planned_cancel_->recorded ? delivered_ >= planned_cancel_->after : !replaying());
  if (reached) begin_cancel();
}

void RunImpl::begin_cancel() {
  PlannedCancel planned = std::move(*planned_cancel_);
  planned_cancel_.reset();
  cancel_reason_ = planned.reason;
  if (!planned.recorded && config_.mode == Mode::durable) {
    auto why = std::make_shared<std::string>(error_to_value(planned.reason).to_json());
    std::int64_t after = guest_ ? delivered_ : -1;
    journal_->enqueue(
        [run = config_.id, after, why, at = now_us()](store::Db& db) {
          return db.run("UPDATE runs SET cancel_after=?, cancel_reason=?, updated_us=? WHERE id=?",
                        {after, *why, at, run});
        },
        fence());
    // If the cancel cannot be recorded, the run is cancelled anyway, as requested.
    if (Result<> durable = journal_->flush(); !durable)
      event("warning", Value().set("what", "the cancel is not recorded").set("message", durable.error().message));
  }
  if (guest_) guest_->drop_work(planned.reason);
  unwind(std::move(planned.reason));
  if (!suspended_) paused_.reset();
  for (auto& wake : std::exchange(held_, {})) wake.set(success());  // lets held operations of cleanups begin
}

void RunImpl::stop_cleanup(Error reason) {
  if (!guest_ || cleanup_.cancelled()) return;
  guest_->drop_work(reason);
  cleanup_.cancel(reason);
  for (const auto& [id, f] : fibers_)
    scheduler_.ready([this, id = id, reason] {
      if (guest_ && !ended(id)) guest_->cancel(id, reason);
    });
}

void RunImpl::unwind(Error reason) {
  auto it = fibers_.find(1);
  if (it != fibers_.end() && !it->second->body_done) it->second->root->source->cancel(std::move(reason));
}

// The first error of a child ends its siblings and the body that spawned it.
void RunImpl::child_failed(ScopeRecord& s, const Error& error) {
  if (s.failure) return;
  if (config_.apart && !s.parent) return;
  if (config_.mode == Mode::session && !s.parent) {  // at the prompt, a failed background fiber ends nothing else
    event("fiber_failed", error_to_value(error));
    return;
  }
  s.failure = error;
  if (!s.source->cancelled()) s.source->cancel(error);
}

void RunImpl::fiber_done(FiberId id, Result<Value> result) {
  FiberRecord& f = fiber(id);
  f.body_done = true;
  f.result = std::move(result);
  if (!f.result && !replay_.over()) unwound_.insert(f.path);
  if (f.result && !cancelled(id) && config_.mode == Mode::durable)
    if (const Entry* missed = replay_.beyond(f.path, f.next_pos)) {
      Error e = make_error(ErrorKind::divergence,
                           fmt::format("{} ended, but the recorded run continued with {} '{}' ({})", f.path,
                                       missed->kind, missed->name, missed->source),
                           "resume with the original script, or start a new run");
      diverge(e);
    }
  scheduler_.ready([this, id] { finish_fiber(id); });
}

// Ends a fiber whose body has returned. Most fibers leave nothing to clean up; only the others need a coroutine.
void RunImpl::finish_fiber(FiberId id) {
  FiberRecord& f = fiber(id);
  const bool lost = !f.result && of_journal(f.result.error()) && config_.mode == Mode::durable;
  if (lost && !divergence_ && !cancel_reason_) return loop_.spawn(finish_unrecorded(id));
  const ScopeRecord& root = *f.root;
  const bool clean = f.scope == f.root && root.children.empty() && root.leases.empty() && !root.failure;
  const bool unwound = root.source->cancelled() && replay_.empty();  // there may be thousands of such fibers
  if (clean && (f.result || unwound)) end_fiber(id);
  else loop_.spawn(finish_scopes(id));
}

// A fiber that failed with a journal error must not end: the run would fail and release the machines that a resume
// needs. The run is suspended instead.
Task<void> RunImpl::finish_unrecorded(FiberId id) {
  const auto life = life_.watch();
  std::shared_ptr<FiberRecord> f = fibers_.at(id);
  Result<> lost = co_await not_recorded(f, f->result.error());
  if (life.ended()) co_return;
  f->result = lost.error();
  co_await finish_scopes(id);
}

// Settles and releases the scopes of the fiber that the guest left open.
Task<void> RunImpl::finish_scopes(FiberId id) {
  const auto life = life_.watch();
  std::shared_ptr<FiberRecord> record = fibers_.at(id);
  FiberRecord& f = *record;
  ScopeRecord* root = f.root;
  // A body that was interrupted leaves inner scopes open; they end from the innermost outwards.
  while (f.scope != root) {
    ScopeId inner = f.scope->id;
    (void)co_await scope_settle(id, inner, make_error(ErrorKind::cancelled, "the fiber has ended"));
    (void)co_await scope_release(id, inner, {});
    if (life.ended()) co_return;
    scope_leave(id, inner);
  }
  std::optional<Error> failure;
  if (!f.result) failure = f.result.error();
  Result<> settled = co_await scope_settle(id, root->id, failure);
  if (life.ended()) co_return;
  if (!settled && f.result) f.result = settled.error();
  Result<> released = co_await scope_release(id, root->id, {});
  if (life.ended()) co_return;
  if (!released && f.result && id != 1) f.result = released.error();
  end_fiber(id);
}

Error shortened(const Error& e) {
  constexpr std::size_t message_bytes = 200;
  Error brief = make_error(e.kind, e.message.substr(0, message_bytes));
  brief.code = e.code;
  brief.operation = e.operation.substr(0, message_bytes);
  return brief;
}

RunImpl::Failure RunImpl::counted_failure(const Error& e) const {
  auto held = MemoryHeld::take(limits_.memory, MemoryUse::Part::fibers, size_bytes(e));
  if (held) return {e, std::move(*held)};
  return {shortened(e), {}};
}

// Marks the fiber as ended and wakes its joiners.
void RunImpl::end_fiber(FiberId id) {
  std::shared_ptr<FiberRecord> record = fibers_.at(id);
  FiberRecord& f = *record;
  ScopeRecord* parent = f.root->parent;
  ScopeId root_id = f.root->id;
  bool as_asked = f.root->source->cancelled() && !f.result && f.result.error().kind == ErrorKind::cancelled;
  f.root = f.scope = nullptr;
  drop_scope(root_id);
  f.ended = true;
  if (parent) {
    parent->children.erase(id);
    if (!f.result) {
      const Error& e = f.result.error();
      failures_.emplace(id, counted_failure(e));
      parent->failed.push_back(id);
      if (!as_asked) child_failed(*parent, e);
    }
    if (parent->children.empty())
      for (auto& wake : std::exchange(parent->settled, {})) wake.set(true);
  }
  for (auto& wake : std::exchange(f.joiners, {})) wake.set(true);
  if (id != 1) fibers_.erase(id);  // execute() takes the main fiber's result
  scheduler_.poke();
}

ScopeId RunImpl::scope_enter(FiberId id, std::string name) {
  FiberRecord& f = fiber(id);
  f.scope = &new_scope(std::move(name), f.scope, id);
  f.scope->number = ++f.scopes;
  return f.scope->id;
}

ScopeId RunImpl::entry_enter(FiberId id) {
  ScopeId entry = scope_enter(id, "entry");
  scope(entry)->transparent = true;
  return entry;
}

void RunImpl::cancel_scope(ScopeId id, Error reason) {
  ScopeRecord* s = scope(id);
  if (!s) return;
  if (guest_ && fibers_.size() == 1) guest_->drop_work(reason);  // with background fibers alive, their work must go on
  s->source->cancel(std::move(reason));
}

Async<> RunImpl::children_end(FiberRecord& f, ScopeRecord& s) {
  while (!s.children.empty()) {
    Wake<bool> done(scheduler_);
    s.settled.push_back(done);
    Waiting waiting(f);
    scheduler_.poke();
    co_await done;
  }
  co_return success();
}

Async<> RunImpl::scope_settle(FiberId id, ScopeId scope_id, std::optional<Error> failure) {
  ScopeRecord* s = scope(scope_id);
  if (!s) co_return success();
  FiberRecord& f = fiber(id);
  bool was_cancelled = s->source->cancelled();
  std::optional<Error> cause = s->failure;
  if (!s->shielded && failure && !was_cancelled)
    s->source->cancel(make_error(ErrorKind::cancelled, "the scope's body failed: " + failure->message));
  // While a scope whose body succeeded waits for its children, the scope and its children can still be cancelled.
  co_await children_end(f, *s);
  s->shielded = true;
  if (!cause) cause = s->failure;
  if (cause) co_return *cause;
  if (!failure && !was_cancelled && s->source->cancelled()) co_return s->source->token().reason();
  co_return success();
}

Async<> RunImpl::scope_release(FiberId id, ScopeId scope_id, std::vector<std::string> kept) {
  ScopeRecord* s = scope(scope_id);
  if (!s) co_return success();
  s->shielded = true;
  co_await children_end(fiber(id), *s);  // fibers that a defer has spawned
  kept = with_volumes(std::move(kept));
  std::vector<std::string> leaving;
  for (const std::string& lease : std::exchange(s->leases, {})) {
    bool keep = s->parent && std::find(kept.begin(), kept.end(), lease) != kept.end();
    if (keep) s->parent->leases.push_back(lease);
    else leaving.push_back(lease);
  }
  std::reverse(leaving.begin(), leaving.end());
  FiberRecord& f = fiber(id);
  if (std::exchange(s->releases, true)) {  // the guest has called scope_release for this scope already
    if (leaving.empty()) co_return success();
    s->number = ++f.scopes;
  }
  Admitted slot = ending(f, -1 - 2 * s->number, s == f.root ? "its end" : "end of scope " + s->name, "");
  co_return co_await release_all(f, std::move(leaving), std::move(slot));
}

void RunImpl::scope_leave(FiberId id, ScopeId scope_id) {
  FiberRecord& f = fiber(id);
  ScopeRecord* s = scope(scope_id);
  if (!s || s == f.root) return;  // a fiber's root scope ends with the fiber
  f.scope = s->parent;
  drop_scope(scope_id);
}

}  // namespace rille::engine
