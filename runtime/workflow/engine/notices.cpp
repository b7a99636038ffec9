// Preemption notices, from the provider's API or from the machine. Running calls are asked to save their work. If the
// lease replaces lost machines, calls whose checkpoints are kept in the home stop, and once they have stopped, the
// lease gets its next machine; other calls run until they are done or lost. The notice is recorded in a row; the agent
// knows what a call has saved, and that it has stopped. docs/design/leases.md
#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/time.hpp"
#include "runtime/workflow/engine/calls.hpp"
#include "runtime/workflow/engine/connector.hpp"
#include "runtime/workflow/engine/run_impl.hpp"

namespace rille::engine {

namespace {
constexpr std::int64_t notice_look_again_ms = 2'000, price_patience_ms = 30'000;
constexpr std::int64_t overdue_us = 60'000'000;  // a machine alive this long after the deadline got a false notice
}  // namespace

std::int64_t Calls::deadline_us(const std::string& lease_id, std::int64_t generation) const {
  const auto it = sessions_.find(lease_id);
  if (it == sessions_.end() || !it->second.notice || it->second.notice->generation != generation) return 0;
  return it->second.notice->deadline_us;
}

// Loads a notice that an earlier process recorded.
void Calls::recall_notice(const lease::Lease& l) {
  std::optional<LeaseSession::Notice>& known = session(l.id).notice;
  if (!known) known = {l.taken_us ? l.generation : 0, l.taken_us};
}

void Calls::noticed(const std::string& lease_id, std::int64_t generation, std::int64_t deadline_us) {
  if (deadline_us <= run_.now_us()) return;
  Result<std::optional<lease::Lease>> l = leases_->find(lease_id);
  if (!l || !*l) return;
  recall_notice(**l);
  LeaseSession::Notice& known = *session(lease_id).notice;
  if (generation < known.generation || (generation == known.generation && deadline_us == known.deadline_us)) return;
  known.generation = generation;
  known.deadline_us = deadline_us;
  run_.journal_->enqueue(
      [lease_id, generation, deadline_us](store::Db& db) {
        return db.run("INSERT OR REPLACE INTO notices(lease,generation,deadline_us) VALUES(?,?,?)",
                      {lease_id, generation, deadline_us});
      },
      run_.fence());
  run_.event("preempting", Value()
                               .set("lease", lease_id)
                               .set("name", (*l)->name)
                               .set("generation", generation)
                               .set("deadline", static_cast<double>(deadline_us) / 1e6));
  tell_working(lease_id, generation);
}

void Calls::tell_working(const std::string& lease_id, std::int64_t generation) {
  if (deadline_us(lease_id, generation) <= run_.now_us()) return;
  const auto working = session(lease_id).working;  // a copy: a call may end and be erased while the others are notified
  for (const auto& [key, one] : working)
    if (one.generation == generation && one.agent && !one.left) run_.loop().spawn(tell_one(lease_id, key, one));
}

// Tells one call of the notice. The call is asked to leave only if all calls on the machine can leave; otherwise it
// would stop and only wait for the others.
Task<void> Calls::tell_one(std::string lease_id, std::string key, LeaseSession::Working one) {
  Result<std::optional<lease::Lease>> l = leases_->find(lease_id);
  bool leave = l && *l && lease::Manager::replaces(**l) && !borrowed(lease_id);
  for (const auto& [other, with] : session(lease_id).working) leave = leave && with.may_leave;
  // If this fails, the call is notified again at the next connection.
  (void)co_await one.agent->preempt(key, deadline_us(lease_id, one.generation), leave);
}

// Polls the provider for preemption notices and the machine's price while calls or transfers use the machine.
void Calls::watch_for_notice(const lease::Lease& l) {
  std::int64_t every_ms = leases_->look_every_ms(l);
  std::int64_t& watched = session(l.id).watched;
  if (!l.request.offer.spot || every_ms <= 0 || watched >= l.generation) return;
  watched = l.generation;
  run_.loop().spawn(watch(l, every_ms));
}

Task<void> Calls::watch(lease::Lease l, std::int64_t every_ms) {
  const auto life = run_.life_.watch();
  LeaseSession& session = this->session(l.id);
  while (true) {
    if (connector_->real_time()) {
      (void)co_await leases_->follow_price(l.id, price_patience_ms, run_.fence(), closed_.token());
      if (life.ended()) co_return;
    }
    const std::int64_t pause_ms = connector_->next_look_ms(l, every_ms);
    if (pause_ms < 0) break;
    Result<> slept = co_await sleep_for(run_.loop(), pause_ms, closed_.token());
    if (life.ended()) co_return;
    if (!slept || session.users <= 0 || session.watched != l.generation) break;
    Result<provider::Machine> machine = co_await leases_->describe(l, closed_.token());
    if (life.ended()) co_return;
    if (!machine) continue;  // a failing provider is asked again
    if (machine->state == provider::MachineState::gone) break;
    if (machine->notice_wall_us) noticed(l.id, l.generation, machine->notice_wall_us);
  }
  if (session.watched == l.generation) session.watched = 0;  // a later call starts a new watch
}

bool Calls::has_left(const agent::CallStatus& status) {
  return status.state == agent::CallState::done && !status.result->ok() && status.result->error().code == "preempted";
}

// Called when a call has left its machine. Keeps the call's last checkpoint, in the home or the store, while that is
// possible, then moves the lease to its next machine. If other calls still run on the old machine a minute after the
// deadline, returns without a move, and the call restarts on the old machine.
Async<> Calls::move_after_notice(std::shared_ptr<Keeper> keeper, std::shared_ptr<agent::AgentClient> agent, Value saved,
                                 CancelToken token) {
  const std::string lease_id = keeper->lease;
  const std::int64_t generation = keeper->generation, until_us = deadline_us(lease_id, generation);
  if (saved.integer("step", -1) > keeper->latest.integer("step", -1)) keeper->latest = std::move(saved);
  while (keeper->busy) RILLE_CO_CHECK(co_await sleep_for(run_.loop(), 5, token));
  const std::int64_t step = keeper->latest.text("directory").empty() ? -1 : keeper->latest.integer("step", -1);
  for (keeper->fault.reset(); keeper->kept_step < step;) {
    co_await keep(keeper, agent, token);
    if (token.cancelled()) co_return token.reason();
    if (keeper->kept_step >= step && !keeper->fault) break;
    if (run_.now_us() >= until_us) break;
    if (agent->broken()) co_return success();  // the caller reconnects and calls this again
    keeper->kept_step = -1;
    RILLE_CO_CHECK(co_await sleep_for(run_.loop(), notice_look_again_ms, token));
  }
  const bool kept = keeper->kept_step >= step && !keeper->fault;
  session(lease_id).working[keeper->key].left = true;
  run_.event("call_left", Value()
                              .set("lease", lease_id)
                              .set("generation", generation)
                              .set("step", keeper->latest["step"])
                              .set("kept", kept)
                              .set("kept_step", keeper->safe_step));
  if (!kept)
    run_.event("warning", Value()
                              .set("what", fmt::format("the checkpoint of step {} was not kept in time", step))
                              .set("message", keeper->fault ? keeper->fault->message : ""));
  while (others_work(lease_id, generation)) {
    if (run_.now_us() >= until_us + overdue_us) co_return success();
    RILLE_CO_TRY(bool gone, co_await lost(lease_id, generation, token));
    if (gone) break;
    RILLE_CO_CHECK(co_await sleep_for(run_.loop(), notice_look_again_ms, token));
  }
  std::string why = "it will be taken away";
  if (until_us) why += " at " + format_utc(until_us);
  Value as_before;
  co_return co_await move_on(lease_id, generation, std::move(why), std::move(as_before), token);
}

bool Calls::others_work(const std::string& lease_id, std::int64_t generation) const {
  const auto it = sessions_.find(lease_id);
  if (it == sessions_.end()) return false;
  return std::any_of(it->second.working.begin(), it->second.working.end(),
                     [&](const auto& one) { return one.second.generation == generation && !one.second.left; });
}

// The preemption deadline for the script, after asking the provider for a newer notice. A failing provider counts as no
// newer notice.
Async<Value> Calls::preempting(std::string lease_id, CancelToken token) {
  RILLE_CO_TRY(std::optional<lease::Lease> l, leases_->find(lease_id));
  if (!l || (!l->has_machine() && l->replacing.empty())) co_return not_live(lease_id, l);
  if (l->state != "live") co_return Value();
  recall_notice(*l);
  Result<provider::Machine> machine = co_await leases_->describe(*l, token);
  if (token.cancelled()) co_return token.reason();
  if (machine && machine->notice_wall_us) noticed(lease_id, l->generation, machine->notice_wall_us);
  std::int64_t at_us = deadline_us(lease_id, l->generation);
  co_return at_us ? Value(static_cast<double>(at_us) / 1e6) : Value();
}

}  // namespace rille::engine
