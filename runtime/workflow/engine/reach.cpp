// Connects to a lease's machine. While the provider calls the machine pending (it pulls images or tests hardware), the
// wait does not count tries to connect. Afterwards the number of tries is limited; for a machine that has never
// answered, the time is limited instead, because the machine's first boot still installs software.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/time.hpp"
#include "runtime/workflow/agent/install.hpp"
#include "runtime/workflow/engine/calls.hpp"
#include "runtime/workflow/engine/connector.hpp"
#include "runtime/workflow/engine/run_impl.hpp"
#include "runtime/workflow/lease/ledger.hpp"
#include "runtime/workflow/lease/parts.hpp"
#include "runtime/workflow/provider/lifetime.hpp"

namespace rille::engine {

namespace {

using provider::MachineState;

constexpr std::int64_t boot_max_ms = 20 * 60'000;  // longest time from the rent that a machine may be pending
constexpr std::int64_t unreachable_ms = 300'000;   // longest silence of a live machine that is new or replaceable
constexpr std::int64_t first_look_ms = 200, longest_look_ms = 5'000;
constexpr std::int64_t told_after_ms = 20'000, told_every_ms = 30'000;

bool has_answered(const lease::Lease& l) {
  return std::any_of(l.tenures.begin(), l.tenures.end(), [&l](const lease::Tenure& t) {
    return t.generation == l.generation && t.machine_id == l.machine_id && t.ready_us;
  });
}

std::string whole_seconds(std::int64_t ms) { return format_duration_ms(ms / 1000 * 1000); }

// The provider's explanation of the machine's state; "": the provider gives none.
std::string words_of(const provider::Machine& machine) {
  for (const char* key : {"problem", "reason"})
    if (std::string words = machine.details.text(key); !words.empty()) return words;
  return {};
}

Error is_gone(const lease::Lease& l) {
  Error lost = make_error(ErrorKind::state, fmt::format("the machine of '{}' ({}) is gone", l.name, l.machine_id),
                          "it was ended outside this run, and its data are lost; rent another one")
                   .with_resource(l.id);
  lost.code = "machine_lost";
  return lost;
}

}  // namespace

struct Calls::Reaching {
  lease::Lease lease;
  CancelToken token;
  bool fresh = false;           // the machine's agent has never answered
  std::int64_t since_us = 0;    // when the wait began; for a fresh machine, when it was rented
  std::int64_t up_us = 0;       // earliest time at which the machine can have become live
  std::int64_t not_yet_us = 0;  // latest time at which the provider said that the machine did not run
  int looks = 0;                // number of polls that found the machine pending
  provider::Machine machine;

  bool hopeless() const { return machine.details.boolean("hopeless"); }  // the provider says that it will never start
  Error unstarted(std::int64_t waited_ms) const {
    const std::string words = words_of(machine);
    Error e = make_error(hopeless() ? ErrorKind::config : ErrorKind::timeout,
                         fmt::format("the machine of '{}' ({}) {}: {} says {}{}{}", lease.name, lease.machine_id,
                                     hopeless() ? "will not start" : "has not started in " + whole_seconds(waited_ms),
                                     lease.provider, to_string(machine.state), words.empty() ? "" : ": ", words),
                         hopeless() ? "remove that cause, and rent again"
                                    : "see the provider's console, or rent another type or region; the machine costs "
                                      "until its lease is released");
    e.code = "agent_unreachable";
    return e;
  }
  Error unanswering(Error last, std::int64_t waited_ms) const {
    const std::string words = words_of(machine);
    Error e = last;
    e.message =
        fmt::format("the machine of '{}' ({}) {} for {}, although {} says {}{}{}; at last: {}", lease.name,
                    lease.machine_id, fresh ? "has never answered" : "has not answered", whole_seconds(waited_ms),
                    lease.provider, to_string(machine.state), words.empty() ? "" : ": ", words, last.message);
    e.code = "agent_unreachable";
    return std::move(e).with_cause(std::move(last));
  }
};

// Tells the user that the machine is still starting, at a limited rate even if many fibers wait for it.
void Calls::tell_starting(const Reaching& r, const std::string& why) {
  const std::int64_t now = run_.now_us();
  std::int64_t& told_us = session(r.lease.id).told_starting_us;
  if (now - r.since_us < told_after_ms * 1000 || now - told_us < told_every_ms * 1000) return;
  told_us = now;
  run_.event("starting", Value()
                             .set("lease", r.lease.id)
                             .set("name", r.lease.name)
                             .set("state", std::string(to_string(r.machine.state)))
                             .set("waited_ms", (now - r.since_us) / 1000)
                             .set("message", why));
}

Async<> Calls::await_start(Reaching& r) {
  const std::int64_t waited_ms = (run_.now_us() - r.since_us) / 1000;
  if (waited_ms >= boot_max_ms || r.hopeless()) co_return r.unstarted(waited_ms);
  tell_starting(r, words_of(r.machine));
  const std::int64_t ms = std::min(first_look_ms << std::min(r.looks++, 8), longest_look_ms);
  RILLE_CO_CHECK(co_await sleep_for(run_.loop(), ms, r.token));
  r.fresh = true;
  r.up_us = run_.now_us();
  co_return success();
}

// Whether to try further after many tries to reach a live machine. An instance on the local computer needs no boot.
bool Calls::patient(const Reaching& r, const Error& why) const {
  if (run_.now_us() >= r.up_us + unreachable_ms * 1000) return false;
  const bool here = r.machine.channel.argv_prefix.empty() && !r.machine.channel.directory.empty();
  const bool by_link = why.kind == ErrorKind::network || why.kind == ErrorKind::timeout;
  return lease::Manager::replaces(r.lease) || (r.fresh && by_link && !here);
}

Async<std::shared_ptr<agent::AgentClient>> Calls::reached(lease::Lease l, std::int64_t not_yet_us,
                                                          std::unique_ptr<agent::AgentClient> made) {
  std::shared_ptr<agent::AgentClient> shared = std::move(made);
  session(l.id).agent = shared;
  if (l.request.idle_after_ms > 0 && connector_->real_time() && !borrowed(l.id))
    run_.loop().spawn(follow(l.id, l.generation, shared));
  const std::int64_t running_us = l.request.offer.billing.from_live ? not_yet_us : 0;
  run_.journal_->enqueue(
      [id = l.id, running_us, at = run_.now_us()](store::Db& db) -> Result<> {
        if (running_us) RILLE_CHECK(lease::record_running(db, id, running_us));
        return lease::record_ready(db, id, at);
      },
      run_.fence());
  (void)co_await tell_unwanted(l.id, shared);
  co_return shared;
}

// Returns a working connection to the agent of the lease's machine. If none can be made, the provider is asked: the
// machine counts as lost only if the provider says so, after minutes without an answer from the agent, or at once if
// what answers is no agent.
Async<std::shared_ptr<agent::AgentClient>> Calls::reach(lease::Lease lease, CancelToken token) {
  LeaseSession& session = this->session(lease.id);
  if (session.connected()) co_return session.agent;
  if (session.lie && session.lie->generation == lease.generation) co_return session.lie->error;
  session.agent.reset();
  Reaching r;
  r.lease = std::move(lease);
  r.token = token;
  r.fresh = !has_answered(r.lease);
  r.up_us = run_.now_us();
  r.since_us = r.fresh && r.lease.live_us ? std::min(r.lease.live_us, r.up_us) : r.up_us;
  for (int failed = 0;;) {
    const std::int64_t asked_us = run_.now_us();
    Result<provider::Machine> described = co_await leases_->describe(r.lease, token);
    if (!described) {  // a provider failure says nothing about the machine
      const Error& e = described.error();
      if (token.cancelled() || !e.retryable || ++failed >= reconnects_max) co_return e;
      std::int64_t ms = std::clamp<std::int64_t>(e.retry_after_ms, 50LL << std::min(failed, 8), 30'000);
      RILLE_CO_CHECK(co_await sleep_for(run_.loop(), ms, token));
      continue;
    }
    r.machine = std::move(*described);
    if (r.machine.state == MachineState::gone || r.machine.state == MachineState::terminating)
      co_return is_gone(r.lease);
    if (r.machine.notice_wall_us) noticed(r.lease.id, r.lease.generation, r.machine.notice_wall_us);
    if (r.machine.state == MachineState::pending) {
      if (!provider::is_unseen(r.machine) && !provider::costs_already(r.machine)) r.not_yet_us = asked_us;
      RILLE_CO_CHECK(co_await await_start(r));
      failed = 0;
      continue;
    }
    const std::int64_t since_us = provider::running_since_us(r.machine);
    if (since_us <= run_.now_us()) r.not_yet_us = std::max(r.not_yet_us, since_us);
    const std::int64_t epoch = epoch_for(r.lease);
    auto made = co_await connector_->connect(run_.loop(), r.lease, r.machine, epoch, token);
    if (made) co_return co_await reached(std::move(r.lease), r.not_yet_us, std::move(*made));
    if (token.cancelled()) co_return token.reason();
    note_lie(r.lease.id, r.lease.generation, made.error());
    // repeating the attempt would fail in the same way
    if (made.error().kind == ErrorKind::integrity) co_return made.error();
    for (const char* code : {"agent_token", "fenced", agent::not_installed})
      if (made.error().code == code) co_return made.error();
    if (++failed >= reconnects_max && !patient(r, made.error()))
      co_return r.unanswering(made.error(), (run_.now_us() - r.up_us) / 1000);
    if (r.fresh) tell_starting(r, made.error().message);
    RILLE_CO_CHECK(co_await sleep_for(run_.loop(), std::min<std::int64_t>(50LL << std::min(failed, 8), 5'000), token));
  }
}

}  // namespace rille::engine
