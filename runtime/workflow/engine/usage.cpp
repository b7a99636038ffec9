// Usage of a run's machines, and the end of machines that are idle for too long. The agent decides that its machine is
// idle, because it sees calls, files and processors even without a runner, and stops the machine if it can. The agent's
// last message tells the runner, which then releases the machine at the provider.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/loop/together.hpp"
#include "runtime/workflow/agent/frame.hpp"
#include "runtime/workflow/engine/calls.hpp"
#include "runtime/workflow/engine/connector.hpp"
#include "runtime/workflow/engine/run_impl.hpp"

namespace rille::engine {

namespace {
// The longest wait for each machine if several are asked; a single machine may still be starting and has no limit.
constexpr std::int64_t patience_ms = 10'000;

// The delay before the next try to connect to the agent.
std::int64_t usage_again_ms(int attempt) { return std::min<std::int64_t>(1000LL << std::min(attempt, 10), 300'000); }
}  // namespace

// Reads the usage of one machine; does not replace a lost machine.
Async<Value> Calls::reading(std::string lease_id, CancelToken token) {
  RILLE_CO_TRY(std::shared_ptr<agent::AgentClient> agent, co_await known_client(lease_id, token));
  RILLE_CO_TRY(Value described, co_await agent->describe(token));
  co_return described["usage"].is_null() ? Value(Value::Object{}) : described["usage"];
}

Async<Value> Calls::telemetry(std::vector<std::string> lease_ids, CancelToken token) {
  std::vector<Together<Value>> asked;
  for (const std::string& id : lease_ids)
    asked.push_back({fmt::format("asking the agent of {} how busy it is", id),
                     [this, id](CancelToken t) { return reading(id, std::move(t)); }});
  const std::int64_t limit_ms = asked.size() > 1 ? patience_ms : 0;
  std::vector<Result<Value>> answers = co_await together(run_.loop(), std::move(asked), limit_ms, token);
  if (token.cancelled()) co_return token.reason();
  Value::Array out;
  for (Result<Value>& answer : answers)
    out.push_back(answer ? std::move(*answer) : Value().set("error", error_to_value(answer.error())));
  co_return Value(std::move(out));
}

// The lease's status for the script. A lease whose machine is being replaced counts as usable until its ttl.
Result<Value> Calls::standing(const std::string& lease_id) const {
  RILLE_TRY(std::optional<lease::Lease> l, leases_->find(lease_id));
  if (!l)
    return make_error(ErrorKind::invalid, fmt::format("there is no lease '{}'", lease_id),
                      "list them with `rille leases --all`");
  const std::int64_t left_us = l->expires_us - run_.loop().clock().wall_us();
  Value out;
  out.set("calls", users(lease_id)).set("left_s", static_cast<double>(left_us) / 1e6);
  const bool goes_on = l->state == "live" || l->state == "resizing" || !l->replacing.empty();
  if (!goes_on) {
    const std::int64_t lived_us = run_.loop().clock().wall_us() - std::max(l->created_us, l->live_us);
    out.set("over", "it is " + l->state);
    if (l->request.idle_after_ms == 0) out.set("lived_s", static_cast<double>(lived_us) / 1e6);
  } else if (left_us <= 0) {
    out.set("over", "its ttl has passed");
  }
  return out;
}

// Retries until the agent of the lease's machine is connected; reach() then starts follow().
Task<void> Calls::wake(std::string lease_id) {
  if (!connector_->real_time()) co_return;
  const auto life = run_.life_.watch();
  const CancelToken closed = closed_.token();
  for (int attempt = 0;; ++attempt) {
    auto agent = co_await known_client(lease_id, closed);
    if (life.ended() || closed.cancelled() || agent || agent.error().code == "machine_lost") co_return;
    if (agent.error().code == agent::broken_protocol) co_return;
    Result<std::optional<lease::Lease>> row = leases_->find(lease_id);
    if (row && (!*row || !(*row)->has_machine())) co_return;
    Result<> slept = co_await sleep_for(run_.loop(), usage_again_ms(attempt), closed);
    if (!slept || life.ended()) co_return;
  }
}

Task<void> Calls::follow(std::string lease_id, std::int64_t generation, std::shared_ptr<agent::AgentClient> agent) {
  const auto life = run_.life_.watch();
  const CancelToken closed = closed_.token();
  Result<> broken = co_await agent->wait_broken(closed);
  if (life.ended() || closed.cancelled() || broken) co_return;
  if (broken.error().code != "idle") {  // only the connection broke: the machine may become idle later
    agent.reset();
    Result<> slept = co_await sleep_for(run_.loop(), usage_again_ms(0), closed);
    if (slept && life.alive()) run_.loop().spawn(wake(std::move(lease_id)));
    co_return;
  }
  LeaseSession& session = this->session(lease_id);
  if (session.ended_idle >= generation) co_return;  // another connection has already ended this idle machine
  session.ended_idle = generation;
  session.agent.reset();
  run_.event("idle",
             Value().set("lease", lease_id).set("generation", generation).set("message", broken.error().message));
  lease::Manager::Event event =
      run_.life_.guard([this](const std::string& e, Value data) { run_.event(e, std::move(data)); });
  for (int attempt = 0;; ++attempt) {
    Result<> turn = co_await enter(lease_id, LeaseSession::Phase::ending,
                                   closed);  // a replacement of the machine waits until the old machine has ended
    if (!turn || life.ended()) co_return;
    store::Fence fence = run_.fence();
    Result<> ended = co_await leases_->end_idle(lease_id, generation, event, std::move(fence));
    if (life.ended()) co_return;
    leave(lease_id);
    if (ended) co_return;
    if (attempt == 0)
      run_.event("warning", Value()
                                .set("what", "an idle machine could not be released; it is tried again")
                                .set("message", ended.error().message));
    Result<> slept = co_await sleep_for(run_.loop(), usage_again_ms(attempt), closed);
    if (!slept || life.ended()) co_return;
  }
}

}  // namespace rille::engine
