// Recovery from a lost machine. A lease with `on_loss = "replace"` gets a machine of the next generation under the same
// budgets; staged files and setups are repeated on that machine, in order; then the interrupted operation continues.
// Each stage is recorded in a row before it begins (leases.replacing, setups.generation), so that a later process can
// continue it.
// docs/design/leases.md
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/core/base/id.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/workflow/agent/frame.hpp"
#include "runtime/workflow/engine/calls.hpp"
#include "runtime/workflow/engine/connector.hpp"
#include "runtime/workflow/engine/run_impl.hpp"
#include "runtime/workflow/engine/staging.hpp"
#include "runtime/workflow/lease/expiry.hpp"
#include "runtime/workflow/lease/ledger.hpp"

namespace rille::engine {

namespace {

constexpr std::int64_t first_wait_ms = 30'000, longest_wait_ms = 300'000;  // between tries to rent a replacement

bool is_lie(const Error& e) { return e.kind == ErrorKind::integrity && e.code == agent::broken_protocol; }
bool is_loss(const Error& e) { return e.code == "machine_lost" || e.code == "agent_unreachable" || is_lie(e); }

Async<Value> carry_with(std::shared_ptr<agent::AgentClient> agent,
                        std::function<Async<agent::Transfer>(agent::AgentClient&, CancelToken)> move,
                        CancelToken token) {
  RILLE_CO_TRY(const agent::Transfer moved, co_await move(*agent, std::move(token)));
  co_return Value().set("files", moved.files).set("bytes", moved.size_bytes);
}

}  // namespace

Error Calls::not_live(const std::string& id, const std::optional<lease::Lease>& l) const {
  if (l && run_.now_us() >= l->expires_us) return lease::ttl_over(*l);
  if (l && l->state == "resizing")
    return make_error(ErrorKind::state,
                      fmt::format("the machine of lease '{}' is being changed to another type", l->name),
                      "wait until box:resize has returned");
  if (l && l->request.idle_after_ms > 0)
    return make_error(ErrorKind::state, fmt::format("lease '{}' is {}", l->name, l->state),
                      fmt::format("perhaps its machine was idle for {}, its idle_after: raise that, or rent with "
                                  "on_loss = \"replace\" to get another machine",
                                  format_duration_ms(l->request.idle_after_ms)));
  return make_error(
      ErrorKind::state, fmt::format("lease '{}' is {}", l ? l->name : id, l ? l->state : "unknown"),
      "the instance's scope has ended, or it was released elsewhere: see `rille leases --all`, and rent again");
}

// Connects to the lease's current machine; does not replace a lost machine.
Async<std::shared_ptr<agent::AgentClient>> Calls::known_client(std::string lease_id, CancelToken token) {
  RILLE_CO_TRY(std::optional<lease::Lease> l, leases_->find(lease_id));
  if (!l || l->state != "live") co_return not_live(lease_id, l);
  co_return co_await reach(std::move(*l), std::move(token));
}

Async<std::shared_ptr<agent::AgentClient>> Calls::client(std::string lease_id, CancelToken token) {
  for (int breaks = 0;;) {
    const std::int64_t resizes = session(lease_id).resizes;
    RILLE_CO_TRY(std::optional<lease::Lease> l, leases_->find(lease_id));
    std::string why;
    if (l && run_.now_us() >= l->expires_us) co_return lease::ttl_over(*l);
    if (l && l->state != "live" && borrowed(lease_id)) co_return not_live(lease_id, l);
    if (l && l->state == "live") {
      auto agent = co_await reach(*l, token);
      if (agent && borrowed(lease_id)) co_return *agent;
      if (agent) {
        Result<> ready = co_await set_up(lease_id, l->generation, *agent, token);
        if (ready) co_return *agent;
        if (token.cancelled()) co_return ready.error();
        if (++breaks > reconnects_max) co_return in_time(lease_id, ready.error());
        if (!ready.error().retryable) {
          note_lie(lease_id, l->generation, ready.error());
          RILLE_CO_TRY(bool gone, co_await lost(lease_id, l->generation, token));
          if (!gone) co_return in_time(lease_id, ready.error());
        }
        session(lease_id).agent.reset();
        continue;
      }
      if (is_loss(agent.error())) {
        RILLE_CO_TRY(const bool again, co_await stood_still(lease_id, resizes, token));
        if (again) continue;
      }
      if (run_.now_us() >= l->expires_us) co_return lease::ttl_over(*l);
      if (!is_loss(agent.error()) || !lease::Manager::replaces(*l) || borrowed(lease_id)) co_return agent.error();
      why = agent.error().message;
    } else if (l && l->state == "resizing") {
      RILLE_CO_CHECK(co_await end_resize(lease_id, token));
      continue;
    } else if (!l || l->replacing.empty()) {
      co_return not_live(lease_id, l);
    }
    Value as_before;
    Result<> moved = co_await move_on(lease_id, l->generation, std::move(why), std::move(as_before), token);
    if (!moved && token.cancelled()) co_return moved.error();
    if (!moved) co_return in_time(lease_id, moved.error());
    breaks = 0;
  }
}

void Calls::note_lie(const std::string& lease_id, std::int64_t generation, const Error& e) {
  if (is_lie(e)) session(lease_id).lie = LeaseSession::Lie{generation, e};
}

Async<bool> Calls::lost(std::string lease_id, std::int64_t generation, CancelToken token) {
  const std::int64_t resizes = session(lease_id).resizes;
  if (!token.cancelled()) RILLE_CO_CHECK(co_await stood_still(lease_id, resizes, token));
  RILLE_CO_TRY(std::optional<lease::Lease> l, leases_->find(lease_id));
  if (!l || token.cancelled()) co_return false;
  if (borrowed(lease_id)) co_return l->generation != generation;  // its own run replaces it
  // A resize ended what ran on the machine; the interrupted operation is repeated after the resize.
  if (l->state == "resizing" || session(lease_id).resizes != resizes) co_return true;
  if (!lease::Manager::replaces(*l) || run_.now_us() >= l->expires_us) co_return false;
  if (l->generation != generation || l->state != "live") co_return l->generation != generation || !l->replacing.empty();
  if (LeaseSession& session = this->session(lease_id); session.lie && session.lie->generation == generation) {
    session.agent.reset();
    co_return true;
  }
  Result<provider::Machine> machine = co_await leases_->describe(*l, token);
  bool gone = machine &&
              (machine->state == provider::MachineState::gone || machine->state == provider::MachineState::terminating);
  if (gone) session(lease_id).agent.reset();
  co_return gone;
}

Async<> Calls::steady(std::string lease_id, CancelToken token) {
  LeaseSession& session = this->session(lease_id);
  while (session.phase != LeaseSession::Phase::steady) {
    Future<Result<>> turn(run_.loop());
    session.waiting.push_back(turn);
    auto registration = token.on_cancel([turn](const Error& why) { turn.set(Result<>(why)); });
    RILLE_CO_CHECK(co_await turn);
  }
  co_return success();
}

Async<> Calls::enter(std::string lease_id, LeaseSession::Phase phase, CancelToken token) {
  LeaseSession& session = this->session(lease_id);
  while (session.phase != LeaseSession::Phase::steady) RILLE_CO_CHECK(co_await steady(lease_id, token));
  session.phase = phase;
  co_return success();
}

void Calls::leave(const std::string& lease_id) {
  LeaseSession& session = this->session(lease_id);
  session.phase = LeaseSession::Phase::steady;
  for (const auto& turn : std::exchange(session.waiting, {})) turn.set(success());
}

Async<> Calls::move_on(std::string lease_id, std::int64_t generation, std::string why, Value options,
                       CancelToken token) {
  const auto life = run_.life_.watch();
  RILLE_CO_CHECK(co_await enter(lease_id, LeaseSession::Phase::moving, token));
  Result<> moved = co_await move_alone(lease_id, generation, std::move(why), std::move(options), token);
  if (life.alive()) leave(lease_id);
  co_return moved;
}

// Replaces the machine. If no machine can be rented, retries until the lease's ttl is over or the caller is cancelled.
Async<> Calls::move_alone(std::string lease_id, std::int64_t generation, std::string why, Value options,
                          CancelToken token) {
  lease::Replace wanted;
  wanted.id = lease_id;
  wanted.why = std::move(why);
  wanted.generation = generation;
  wanted.options = std::move(options);
  wanted.fence = run_.fence();
  wanted.most = lease::LeaseLimit(run_.limits_.leases_max, run_.limits_.leases_of);
  lease::Manager::Event event = [this](const std::string& e, Value data) { run_.event(e, std::move(data)); };
  session(lease_id).agent.reset();
  for (int waits = 0;; ++waits) {
    Result<lease::Lease> moved = co_await leases_->replace(wanted, event, token);
    if (moved) {
      end_by(lease_id, moved->expires_us);  // the budget may have shortened the lease's ttl
      break;
    }
    Error e = moved.error();
    if (token.cancelled()) co_return token.reason();
    if (e.kind != ErrorKind::capacity && !e.retryable) co_return e;
    std::int64_t ms =
        std::max<std::int64_t>(e.retry_after_ms, std::min(first_wait_ms << std::min(waits, 8), longest_wait_ms));
    run_.event("replace_waits", Value().set("lease", lease_id).set("message", e.message).set("delay_ms", ms));
    RILLE_CO_CHECK(co_await sleep_for(run_.loop(), ms, token));
  }
  run_.alert_budgets();
  if (users(lease_id) > 0)
    run_.journal_->enqueue(
        [lease_id, at = run_.now_us()](store::Db& db) { return lease::record_busy(db, lease_id, true, at); },
        run_.fence());
  co_return success();
}

Async<LeaseView> Calls::replace(std::string lease_id, Value options, std::string why, CancelToken token) {
  RILLE_CO_CHECK(co_await end_resize(lease_id, token));
  RILLE_CO_TRY(std::optional<lease::Lease> l, leases_->find(lease_id));
  if (!l || (l->state != "live" && l->replacing.empty())) co_return not_live(lease_id, l);
  RILLE_CO_CHECK(co_await move_on(lease_id, l->generation, std::move(why), std::move(options), token));
  co_return view(lease_id);
}

// --- Setups to repeat on the lease's next machine. A setup's spec is { what = "stage", from, to, options } or
// { what = "call", kind, name, payload, timeout_ms, sim }.

Value Calls::setup_of(const std::string& from, const std::string& to, const Value& options) {
  Value v;
  v.set("what", "stage").set("from", from).set("to", to).set("options", options);
  return v;
}

Value Calls::setup_of(const CallSpec& spec) {
  Value v;
  v.set("what", "call").set("kind", spec.kind).set("name", spec.name).set("payload", spec.payload);
  v.set("timeout_ms", spec.timeout_ms).set("sim", spec.sim);
  return v;
}

// The write that adds a setup's row. In its transaction the entry of the setup's operation is written first, so the
// run's newest entry is that operation.
store::Journal::Write Calls::setup_write(const std::string& lease_id, const Value& spec,
                                         std::int64_t generation) const {
  std::string text = spec.to_json();
  run_.count_row(text.size());
  return [lease_id, spec = std::move(text), generation, run = run_.config_.number](store::Db& db) -> Result<> {
    return db.run(
        "INSERT INTO setups(lease,n,spec,generation,entry) "
        "VALUES(?1,(SELECT COALESCE(MAX(n),0)+1 FROM setups WHERE lease=?1),?2,?3,"
        "COALESCE((SELECT MAX(id) FROM entries WHERE id>=?4 AND id<?5),0))",
        {lease_id, spec, generation, entry_id(run, 0), entry_id(run + 1, 0)});
  };
}

// The setups that the machine of this generation still lacks, in order; of identical setups only the last one counts.
Result<std::vector<Calls::Setup>> Calls::owed_setups(const std::string& lease_id, std::int64_t generation) const {
  std::vector<Setup> out;
  RILLE_CHECK(
      run_.journal_->reader().query("SELECT n,spec FROM setups AS s WHERE lease=?1 AND generation<?2 "
                                    "AND n=(SELECT MAX(n) FROM setups WHERE lease=?1 AND spec=s.spec) ORDER BY n",
                                    {lease_id, generation}, [&](const store::Row& row) {
                                      out.push_back({row.integer(0), row.text(1)});
                                    }));
  return out;
}

Async<> Calls::set_up(std::string lease_id, std::int64_t generation, std::shared_ptr<agent::AgentClient> agent,
                      CancelToken token) {
  RILLE_CO_TRY(std::vector<Setup> owed, owed_setups(lease_id, generation));
  if (owed.empty() && session(lease_id).phase == LeaseSession::Phase::steady) co_return success();
  const auto life = run_.life_.watch();
  RILLE_CO_CHECK(co_await enter(lease_id, LeaseSession::Phase::setting_up, token));
  Result<> done = co_await set_up_alone(lease_id, generation, std::move(agent), token);
  if (life.alive()) leave(lease_id);
  co_return done;
}

Async<> Calls::set_up_alone(std::string lease_id, std::int64_t generation, std::shared_ptr<agent::AgentClient> agent,
                            CancelToken token) {
  RILLE_CO_TRY(std::vector<Setup> owed, owed_setups(lease_id, generation));
  for (const Setup& setup : owed) {
    RILLE_CO_TRY(Value spec, Value::from_json(setup.spec));
    RILLE_CO_CHECK(co_await set_up_one(lease_id, setup.n, generation, std::move(spec), agent, token));
    store::Journal::Write done = [lease_id, n = setup.n, generation](store::Db& db) {
      return db.run("UPDATE setups SET generation=? WHERE lease=? AND n=?", {generation, lease_id, n});
    };
    RILLE_CO_CHECK(co_await run_.journal_->commit(std::move(done), run_.fence()));
  }
  co_return success();
}

Async<> Calls::set_up_one(std::string lease_id, std::int64_t n, std::int64_t generation, Value spec,
                          std::shared_ptr<agent::AgentClient> agent, CancelToken token) {
  const bool files = spec.text("what") == "stage";
  run_.event("set_up_again", Value()
                                 .set("lease", lease_id)
                                 .set("generation", generation)
                                 .set("what", files ? "stage " + spec.text("to") : spec.text("name")));
  if (!files) co_return co_await set_up_call(lease_id, n, generation, std::move(spec), std::move(agent), token);
  RILLE_CO_TRY(const StagingPtr staging,
               co_await plan_stage(lease_id, spec.text("from"), spec.text("to"), spec["options"], token));
  staging->generation = generation;
  const Carry carry = [agent](Move move, CancelToken t) { return carry_with(agent, std::move(move), std::move(t)); };
  Result<Value> moved = co_await carry_out(staging, carry, token);
  if (!moved) co_return moved.error();
  co_return success();
}

// Repeats a setup call. The call's key contains the generation: after a crash of this process, the next process joins
// the running call, and the lease's next machine runs the call anew.
Async<> Calls::set_up_call(std::string lease_id, std::int64_t n, std::int64_t generation, Value saved,
                           std::shared_ptr<agent::AgentClient> agent, CancelToken token) {
  CallSpec spec;
  spec.kind = saved.text("kind");
  spec.name = saved.text("name");
  spec.payload = saved["payload"];
  spec.timeout_ms = saved.integer("timeout_ms");
  spec.sim = saved["sim"];
  std::string key = call_key(lease_id, fmt::format("setup {} of generation {}", n, generation));
  agent::StartRequest request = start_request(spec, key, generation);
  RILLE_CO_CHECK(co_await agent->start(request, token));
  agent::AttachHandlers handlers;
  handlers.log = [this](std::string_view text, std::int64_t) {
    if (run_.hooks().print) run_.hooks().print(text);
  };
  RILLE_CO_TRY(agent::CallStatus status, co_await agent->attach(key, 0, handlers, token));
  Error failed = make_error(ErrorKind::state, fmt::format("the setup '{}' has no result", spec.name),
                            "run the setup's program by hand on such a machine; when it works, rent again");
  Result<Value> result = status.result ? *status.result : Result<Value>(failed);
  if (result && (result->integer("code") || result->integer("signal")) && spec.kind == "exec") {
    failed.message = fmt::format("the setup '{}' ended with code {}, signal {}", spec.name, result->integer("code"),
                                 result->integer("signal"));
    result = failed;
  }
  if (result) co_return success();
  Error e = result.error();
  e.message = fmt::format("machine number {} of this lease could not be set up like the machine before: {}", generation,
                          e.message);
  co_return e;
}

}  // namespace rille::engine
