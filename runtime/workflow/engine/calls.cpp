#include "runtime/workflow/engine/calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "runtime/core/base/id.hpp"
#include "runtime/workflow/agent/heard.hpp"
#include "runtime/workflow/engine/connector.hpp"
#include "runtime/workflow/engine/keeping_shares.hpp"
#include "runtime/workflow/engine/measuring.hpp"
#include "runtime/workflow/engine/run_impl.hpp"
#include "runtime/workflow/provider/catalogue/workload.hpp"

namespace rille::engine {

namespace {

constexpr int keep_again_max = 3;  // how often the last checkpoint is kept again after a failure that may pass
constexpr std::int64_t keep_pause_ms = 500;

constexpr std::int64_t steady_ms = 60'000;  // a connection that lasted this long resets the count of breaks

LeaseView to_view(const lease::Lease& l, std::int64_t now_us) {
  LeaseView v;
  v.id = l.id;
  v.name = l.name;
  v.provider = l.provider;
  v.state = l.state;
  v.machine_id = l.machine_id;
  v.generation = static_cast<int>(l.generation);
  v.region = l.request.offer.region;
  v.gpu = l.request.offer.gpu;
  v.gpu_count = l.request.offer.gpu_count;
  v.vcpus = l.request.offer.vcpus;
  v.memory_bytes = l.request.offer.memory_bytes;
  v.spot = l.request.offer.spot;
  v.price_micros_per_hour = l.price_micros_per_hour;
  v.created_wall_us = l.created_us;
  v.expires_wall_us = l.expires_us;
  v.spent_micros = l.spent_micros(now_us);
  v.costs = l.costs(now_us);
  v.shown_price = l.price().shown();
  return v;
}

// The workload's name: "scripts/train_gpt.lua" -> "train_gpt"; if the script is not a file, the call's name.
std::string workload_of(const std::string& script, const std::string& call) {
  const std::filesystem::path path(script);
  return path.has_extension() ? path.stem().string() : call;
}

}  // namespace

Value LeaseView::to_value() const {
  Value v;
  v.set("id", id)
      .set("name", name)
      .set("provider", provider)
      .set("state", state)
      .set("machine", machine_id)
      .set("region", region);
  v.set("gpu", gpu).set("gpu_count", gpu_count).set("vcpus", vcpus).set("memory", memory_bytes).set("spot", spot);
  v.set("generation", generation);
  if (price_micros_per_hour >= 0) v.set("price_per_hour", static_cast<double>(price_micros_per_hour) / 1e6);
  return v;
}

Calls::Calls(RunImpl& run, lease::Manager* leases, std::shared_ptr<Connector> connector)
    : run_(run), leases_(leases), connector_(std::move(connector)),
      fanout_(run.loop(), [&run](const std::string& said) {
        run.event("warning", Value().set("what", "stage").set("message", said));
      }) {}
Calls::~Calls() { closed_.cancel(make_error(ErrorKind::cancelled, "the run has ended")); }

std::string Calls::call_key(const std::string& lease_id, const std::string& key) const {
  return "c-" + derive_hex({"call", run_.id(), lease_id, key}, 20);
}

Async<lease::Lease> Calls::rent(std::string key, std::string name, std::string scope, Value options,
                                lease::LeaseLimit most, CancelToken token) {
  connector_->adapt_rent(lease::Manager::lease_id(run_.id(), key), options);
  if (Result<provider::Workload> by = provider::Workload::resolve(home_of(run_.config_.home), options); !by) {
    RILLE_CO_TRY(std::optional<lease::Lease> begun, leases_->find(lease::Manager::lease_id(run_.id(), key)));
    if (!begun) co_return by.error();
    provider::Workload::leave_out(options);  // complete the begun rent even if the measurements file is gone
  }
  lease::Acquire request;
  request.key = std::move(key);
  request.name = std::move(name);
  request.scope = std::move(scope);
  request.options = std::move(options);
  request.fence = run_.fence();
  request.most = std::move(most);
  const auto life = run_.life_.watch();
  lease::Manager::Event event = [this](const std::string& e, Value data) { run_.event(e, std::move(data)); };
  Result<lease::Lease> made = co_await leases_->acquire(std::move(request), std::move(event), token);
  if (made && life.alive()) session(made->id).in_term().orphan_ms = made->request.orphan_after_ms;
  co_return made;
}

Async<> Calls::release(std::string lease_id) {
  LeaseSession& session = this->session(lease_id);
  session.agent.reset();
  session.unwanted.clear();
  lease::Manager::Event event = [this](const std::string& e, Value data) { run_.event(e, std::move(data)); };
  const auto life = run_.life_.watch();
  store::Fence fence;  // of a detached lease that this run only uses: the home ends it, without a fence
  if (!borrowed(lease_id)) fence = run_.fence();
  const Result<> released = co_await leases_->release(lease_id, std::move(event), std::move(fence));
  if (life.alive() && released && session.term) session.term.reset(), keep_time();
  co_return released;
}

Async<> Calls::release_run() {
  if (!leases_) co_return success();
  for (auto& [id, session] : sessions_) session.agent.reset();
  RILLE_CO_TRY(std::vector<lease::Lease> held, leases_->of_run(run_.id()));
  std::optional<Error> first;
  for (auto l = held.rbegin(); l != held.rend(); ++l) {
    if ((l->state == "released" && !l->between_machines()) || l->detached) continue;
    if (Result<> r = co_await release(l->id); !r && !first) first = r.error();
  }
  if (first) co_return *first;
  co_return success();
}

Result<LeaseView> Calls::view(const std::string& lease_id) const {
  RILLE_TRY(std::optional<lease::Lease> l, leases_->find(lease_id));
  if (!l)
    return make_error(ErrorKind::invalid, fmt::format("there is no lease '{}'", lease_id),
                      "list them with `rille leases --all`");
  return to_view(*l, run_.loop().clock().wall_us());
}

void Calls::use(const std::string& lease_id, int more) {
  int& users = session(lease_id).users;
  const bool before = users > 0;
  users += more;
  if (before == (users > 0) || borrowed(lease_id)) return;
  run_.journal_->enqueue([lease_id, busy = !before,
                          at = run_.now_us()](store::Db& db) { return lease::record_busy(db, lease_id, busy, at); },
                         run_.fence());
}

int Calls::users(const std::string& lease_id) const {
  const auto it = sessions_.find(lease_id);
  return it == sessions_.end() ? 0 : it->second.users;
}

// The error of a call that failed too often: its last attempt's error, and the number of attempts.
Error Calls::gave_up(const std::string& name, int attempts, Error last) {
  Error e = last;
  e.kind = last.kind;
  e.message = fmt::format("call '{}' ended {} times in a row without a new checkpoint; the last time: {}", name,
                          attempts, last.message);
  e.code = "restarts_max";
  e.retryable = false;
  return std::move(e).with_cause(std::move(last));
}

// The pause before a call's next attempt, with full jitter seeded by the call's identity.
std::int64_t Calls::restart_delay_ms(const std::string& agent_key, int attempt, int idle_attempts) const {
  if (idle_attempts <= 0) return 0;  // the last attempt made progress: restart at once
  const RetryPolicy& p = run_.config_.restarts;
  double full = std::min<double>(static_cast<double>(p.cap_ms),
                                 static_cast<double>(p.initial_ms) * std::pow(p.factor, idle_attempts - 1));
  std::uint64_t dice = std::stoull(derive_hex({"restart", agent_key, std::to_string(attempt)}, 12), nullptr, 16);
  return static_cast<std::int64_t>(full * (static_cast<double>(dice) / static_cast<double>(1ULL << 48)));
}

Async<Value> Calls::call(std::string lease_id, std::string key, CallSpec spec, Postponed postponed, CancelToken token,
                         std::int64_t& ran_on) {
  const auto life = run_.life_.watch();
  use(lease_id, 1);
  CancelSource working(token);
  const auto in_time = bound(lease_id, working);
  Result<Value> result =
      co_await run_call(lease_id, key, std::move(spec), std::move(postponed), working.token(), ran_on);
  if (life.ended()) co_return result;
  session(lease_id).working.erase(call_key(lease_id, key));
  use(lease_id, -1);
  // The agent ends the call, so that it does not outlive the scope that started it.
  if (!result && token.cancelled()) forget(lease_id, key, token.reason().message, true);
  co_return result;
}

agent::StartRequest Calls::start_request(const CallSpec& spec, std::string key, std::int64_t generation) const {
  agent::StartRequest request;
  request.call_key = std::move(key);
  request.generation = generation;
  request.epoch = run_.fence().epoch;
  request.spec = spec.kind == "exec" ? spec.payload : Value().set("payload", spec.payload);
  request.spec.set("kind", spec.kind).set("name", spec.name).set("run", run_.id());
  connector_->adapt_call(spec, request);
  if (spec.timeout_ms) request.spec.set("timeout_ms", spec.timeout_ms);
  return request;
}

// A running call: the state shared by its attempts.
struct Calls::RunningCall {
  std::string lease_id;
  CallSpec spec;
  agent::StartRequest request = {};
  std::int64_t offset = 0;                 // bytes of the call's log printed so far
  std::string key;                         // of the call's entry
  std::optional<MetricFile> metrics = {};  // of the call on its present machine; opened by its first metric
  bool metrics_failed = false;
  Measuring measuring;
  std::shared_ptr<Keeper> keeper = std::make_shared<Keeper>();
  std::shared_ptr<agent::AgentClient> agent = {};
  struct Attempts {          // on the current machine, as this process has seen them
    bool started = false;    // since an attempt was counted last
    int last = 0;            // the newest attempt's number
    int counted = 0;         // the number of the attempt that was counted last
    int idle = 0;            // attempts in a row that ended without a new checkpoint
    std::int64_t step = -1;  // of the newest checkpoint
  } attempts;
  std::int64_t resizes = 0;  // of the lease, when the attempts were counted last

  RunningCall(RunImpl& run, std::string lease, CallSpec s)
      : lease_id(std::move(lease)), spec(std::move(s)),
        measuring(home_of(run.config_.home), run.id(), workload_of(run.config_.script, spec.name)) {}
};

// Sets what follows from the key of the call's entry.
void Calls::identify(RunningCall& work, const std::string& key) const {
  work.key = key;
  work.request = start_request(work.spec, call_key(work.lease_id, key), 0);
  work.keeper->lease = work.lease_id;
  work.keeper->key = work.request.call_key;
  work.keeper->folder = folder_of(work.spec.name, work.keeper->key);
}

// The handlers refer to `work`, which must outlive them.
agent::AttachHandlers Calls::handlers(RunningCall& work, CancelToken token) {
  agent::AttachHandlers callbacks;
  callbacks.log = [this, &work](std::string_view text, std::int64_t at) {
    work.offset = at + static_cast<std::int64_t>(text.size());
    if (run_.hooks().print) run_.hooks().print(text);
  };
  callbacks.progress = [this, &work](const Value& p) {
    if (Result<> kept = work.measuring.hear(p, run_.loop().clock().wall_us()); !kept)
      run_.event("warning", Value().set("what", "how fast it trains is not kept").set("message", kept.error().message));
    if (run_.hooks().progress) run_.hooks().progress(p);
  };
  if (run_.config_.keeps_metrics)
    callbacks.metrics = [this, &work](std::string_view lines, std::int64_t at) {
      if (Result<> kept = keep_metrics(work, lines, at); !kept && !std::exchange(work.metrics_failed, true))
        run_.event("warning", Value().set("what", "metrics are not kept").set("message", kept.error().message));
    };
  callbacks.notice = [this, &work](std::int64_t deadline_us) {
    noticed(work.lease_id, work.request.generation, deadline_us);
  };
  callbacks.checkpoint = [this, &work, token](const Value& c) {
    work.keeper->latest = c;
    shares_.note(work.lease_id, work.agent, c);  // told anew with each checkpoint, and to each connection
    if (is_share_of_another(c)) return;          // rank 0 tells of the checkpoint
    if (work.spec.keep_checkpoints && !work.keeper->busy) run_.loop().spawn(keep(work.keeper, work.agent, token));
    run_.event("checkpoint", c);
  };
  return callbacks;
}

// Opens the file of the call's metrics on its machine.
Result<> Calls::open_metrics(RunningCall& work) {
  MetricSource source;
  source.key = work.key;
  source.generation = work.request.generation;
  RILLE_TRY(std::optional<lease::Lease> l, leases_->find(work.lease_id));
  if (l) source.lease = l->name;
  const std::string name = MetricFile::call_name(work.request.call_key, work.request.generation);
  RILLE_TRY(work.metrics, MetricFile::open(run_.home(), name, source));
  return {};
}

Result<> Calls::keep_metrics(RunningCall& work, std::string_view lines, std::int64_t at) {
  if (!work.metrics) RILLE_CHECK(open_metrics(work));
  if (at != work.metrics->size_bytes() && at != 0) return {};  // the machine has begun the call anew if it is 0
  if (run_.limits_.disk) RILLE_CHECK(run_.limits_.disk->take(static_cast<std::int64_t>(lines.size())));
  return work.metrics->append(lines);
}

// Starts the call on a machine that this process has not seen yet: the first one, or a replacement.
Async<> Calls::begin_on(RunningCall& work, const lease::Lease& l, CancelToken token) {
  if (work.request.generation) {
    run_.event("call_moved", Value()
                                 .set("call", work.spec.name)
                                 .set("lease", work.lease_id)
                                 .set("generation", l.generation)
                                 .set("from_checkpoint", !work.keeper->latest.is_null()));
    work.offset = work.request.after_attempt = 0;
    work.attempts = {};
  }
  if (!work.keeper->stored) RILLE_CO_CHECK(open_store(work.spec, *work.keeper));
  work.request.generation = work.keeper->generation = l.generation;
  work.measuring.on(l);
  work.metrics.reset();
  const std::string metrics = MetricFile::call_name(work.request.call_key, l.generation);
  if (run_.config_.keeps_metrics && MetricFile::exists(run_.home(), metrics))
    open_metrics(work).ok();  // a failure is told when the first metric comes
  // A setup may install the driver that the GPU check needs.
  if (work.spec.setup) co_return success();
  co_return co_await look_for_gpus(l, work.agent, token);
}

// Notes that the call is on this machine, before each attach.
void Calls::work_on(RunningCall& work, const lease::Lease& l) {
  agent::StartRequest& request = work.request;
  request.epoch = epoch_for(l);
  session(l.id).working[request.call_key] = {work.agent, request.generation, work.spec.keep_checkpoints};
  watch_for_notice(l);
  recall_notice(l);
  tell_working(l.id, request.generation);
}

// A lease's own run may be taken over by another process, with a higher epoch, while this run uses the lease.
bool Calls::may_pass_again(const std::string& lease_id, const Error& e) const {
  return e.retryable || (borrowed(lease_id) && e.code == "fenced");
}

void Calls::restarted(const RunningCall& work, const std::string& why, int attempt, std::int64_t delay_ms) {
  run_.event("call_restarted", Value()
                                   .set("call", work.spec.name)
                                   .set("why", why)
                                   .set("from_checkpoint", !work.keeper->latest.is_null())
                                   .set("attempt", attempt)
                                   .set("delay_ms", delay_ms));
}

Async<> Calls::restore_and_start(RunningCall& work, CancelToken token) {
  if (work.spec.keep_checkpoints) RILLE_CO_CHECK(co_await restore(work.keeper, work.agent, token));
  RILLE_CO_TRY(agent::CallStatus begun, co_await work.agent->start(work.request, token));
  work.attempts.started = true;
  co_return success();
}

// An error if the agent says that an earlier attempt is the newest. A call that the machine no longer has begins anew.
Result<agent::CallStatus> Calls::in_order(RunningCall& work, Result<agent::CallStatus> status) {
  if (!status) return status;
  const bool forgotten = status->state == agent::CallState::absent && status->attempt == 0;
  if (!forgotten && status->attempt < work.attempts.last)
    return agent::lie(fmt::format("attempt {} of a call after its attempt {}", status->attempt, work.attempts.last));
  work.attempts.last = status->attempt;
  return status;
}

// Counts an attempt that ended without a result. The agent counts as well, over processes of the runner, but it may
// lie.
void Calls::count_attempt(RunningCall& work, agent::CallStatus& ended) {
  RunningCall::Attempts& seen = work.attempts;
  const std::int64_t step = ended.checkpoint.integer("step", -1), resizes = session(work.lease_id).resizes;
  const bool resized = std::exchange(work.resizes, resizes) != resizes;  // a resize ended the attempt
  if (step > seen.step || resized) seen.idle = 0;
  else if (seen.started || ended.attempt > seen.counted) ++seen.idle;
  seen.started = false;
  seen.counted = std::max(seen.counted, ended.attempt);
  seen.step = std::max(seen.step, step);
  ended.idle_attempts = std::max(ended.idle_attempts, seen.idle);
}

// Copies the last checkpoints of an ended call that are not copied yet.
Async<> Calls::keep_last(RunningCall& work, CancelToken token) {
  while (work.keeper->busy) RILLE_CO_CHECK(co_await sleep_for(run_.loop(), 5, token));
  if (!work.spec.keep_checkpoints) co_return success();
  const auto life = run_.life_.watch();
  const std::shared_ptr<Keeper> keeper = work.keeper;
  co_await keep(keeper, work.agent, token);
  for (int again = 0; again < keep_again_max && keeper->fault && may_be_kept_later(*keeper->fault) && life.alive();
       ++again) {
    RILLE_CO_CHECK(co_await sleep_for(run_.loop(), keep_pause_ms << again, token));
    keeper->kept_step = keeper->latest.integer("step") - 1;
    co_await keep(keeper, work.agent, token);
  }
  if (keeper->fault && life.alive()) tell_not_kept(*keeper, "the last checkpoint was not kept");
  co_return success();
}

// Waits before a dead call's next attempt, longer after each attempt without a new checkpoint. Fails after too many
// attempts without a new checkpoint in a row.
Async<> Calls::wait_for_restart(RunningCall& work, const agent::CallStatus& ended, Postponed& postponed,
                                CancelToken token) {
  Error why =
      ended.state == agent::CallState::done
          ? ended.result->error()
          : make_error(
                ErrorKind::internal, "the agent on its machine died",
                "find out what ends processes on the instance: lack of memory, or see the instance's system log");
  if (ended.idle_attempts >= run_.config_.restarts.attempts_max)
    co_return gave_up(work.spec.name, ended.idle_attempts, std::move(why));
  const std::int64_t now_us = run_.loop().clock().wall_us();
  if (postponed.until_us <= now_us)
    postponed.until_us = now_us + 1000 * restart_delay_ms(work.request.call_key, ended.attempt, ended.idle_attempts);
  postponed.record(postponed.until_us);
  const std::int64_t delay_ms = (postponed.until_us - now_us) / 1000;
  restarted(work, why.message, ended.attempt + 1, delay_ms);
  co_return co_await sleep_for(run_.loop(), delay_ms, token);
}

Async<Value> Calls::run_call(std::string lease_id, std::string key, CallSpec spec, Postponed postponed,
                             CancelToken token, std::int64_t& ran_on) {
  RunningCall work(run_, lease_id, std::move(spec));
  identify(work, key);
  agent::AttachHandlers callbacks = handlers(work, token);
  agent::StartRequest& request = work.request;
  std::shared_ptr<Keeper>& keeper = work.keeper;
  std::shared_ptr<agent::AgentClient>& agent = work.agent;
  int breaks = 0;

  while (true) {
    auto connected = co_await client(lease_id, token);
    if (!connected) co_return connected.error();
    agent = *connected;
    RILLE_CO_TRY(std::optional<lease::Lease> l, leases_->find(lease_id));
    if (l->generation != request.generation) {  // the call has not started on this machine yet
      if (request.generation) breaks = 0, postponed.until_us = 0;
      ran_on = l->generation;
      RILLE_CO_CHECK(co_await begin_on(work, *l, token));
    }
    work_on(work, *l);
    std::int64_t since_ns = run_.loop().clock().monotonic_ns();
    callbacks.metrics_offset = work.metrics ? work.metrics->size_bytes() : 0;
    auto attached = in_order(work, co_await agent->attach(request.call_key, work.offset, callbacks, token));
    if (run_.loop().clock().monotonic_ns() - since_ns >= steady_ms * 1'000'000) breaks = 0;
    if (attached && has_left(*attached) && work.spec.keep_checkpoints) {
      RILLE_CO_CHECK(co_await move_after_notice(keeper, agent, attached->checkpoint, token));
      RILLE_CO_TRY(l, leases_->find(lease_id));
      if (agent->broken() || l->generation != request.generation) continue;
      request.after_attempt = attached->attempt;  // the machine stays, because other calls run on it
      restarted(work, "its machine was not taken away", attached->attempt + 1, 0);
      RILLE_CO_CHECK(co_await agent->start(request, token));
      continue;
    }
    if (attached) {
      bool done = attached->state == agent::CallState::done;
      if (done && (attached->result->ok() || attached->result->error().code != "worker_died")) {
        if (!attached->result->ok()) {  // the call may have failed because its machine is ending: ask the provider
          RILLE_CO_TRY(bool gone, co_await lost(lease_id, request.generation, token));
          if (gone) continue;
        }
        RILLE_CO_CHECK(co_await keep_last(work, token));
        co_return std::move(*attached->result);
      }
      request.after_attempt = attached->attempt;
      count_attempt(work, *attached);
      if (attached->attempt > 0 || attached->idle_attempts > 0)  // the call's worker died, alone or with the agent
        RILLE_CO_CHECK(co_await wait_for_restart(work, *attached, postponed, token));
      const Result<> begun = co_await restore_and_start(work, token);
      if (begun) continue;
      attached = begun.error();
    }
    const Error& e = attached.error();
    if (token.cancelled()) co_return token.reason();
    if (++breaks > reconnects_max) co_return in_time(lease_id, e);
    if (!may_pass_again(lease_id, e)) {
      note_lie(lease_id, request.generation, e);
      RILLE_CO_TRY(bool gone, co_await lost(lease_id, request.generation, token));
      if (!gone) co_return in_time(lease_id, e);
    }
    run_.event("reconnect", Value().set("call", work.spec.name).set("why", e.message));
    session(lease_id).agent.reset();
    RILLE_CO_CHECK(co_await sleep_for(run_.loop(), std::min<std::int64_t>(20LL << std::min(breaks, 8), 5'000), token));
  }
}

// Lets the agent drop the call's result, at the next connection. If `now` is true, connects for this purpose.
void Calls::forget(const std::string& lease_id, const std::string& key, std::string reason, bool now) {
  LeaseSession& session = this->session(lease_id);
  session.unwanted.insert_or_assign(call_key(lease_id, key), std::move(reason));
  if (!now && !session.connected()) return;  // the next connection sends the keys first
  if (!std::exchange(session.telling, true)) run_.loop().spawn(tell_until_told(lease_id));
}

Task<void> Calls::tell_until_told(std::string lease_id) {
  const auto life = run_.life_.watch();
  LeaseSession& session = this->session(lease_id);
  for (int tries = 0; !session.unwanted.empty() && tries < reconnects_max; ++tries) {
    auto agent = co_await known_client(lease_id, closed_.token());  // a new connection also sends the keys to forget
    if (life.ended()) co_return;
    if (!agent) break;  // the machine is gone or unreachable: the next connection sends the keys
    Result<> told = co_await tell_unwanted(lease_id, *agent);
    if (life.ended()) co_return;
    if (told) continue;
    session.agent.reset();  // the agent could not be told: treat the connection as broken and make a new one
    told = co_await sleep_for(run_.loop(), std::min<std::int64_t>(20LL << std::min(tries, 8), 5'000), closed_.token());
    if (life.ended()) co_return;
  }
  session.telling = false;
}

Async<> Calls::tell_unwanted(std::string lease_id, std::shared_ptr<agent::AgentClient> agent) {
  constexpr std::size_t keys_max = 1000;  // call keys in one request to the agent
  const auto life = run_.life_.watch();
  auto& unwanted = session(lease_id).unwanted;
  while (!unwanted.empty() && !agent->broken()) {
    std::vector<std::string> keys;
    std::string reason = unwanted.begin()->second;
    for (auto call = unwanted.begin(); call != unwanted.end() && keys.size() < keys_max; ++call)
      if (call->second == reason) keys.push_back(call->first);
    Result<> told = co_await agent->forget(keys, reason);
    if (life.ended()) co_return success();
    if (!told && told.error().kind == ErrorKind::network) co_return told;
    // Any answer, even an error, is final for these keys.
    for (const std::string& key : keys) unwanted.erase(key);
  }
  co_return success();
}

}  // namespace rille::engine
