// How busy a run's machines are, and what becomes of those that were idle for too long. That one is idle is decided by
// its agent, which sees calls, files and processors, also while no runner is there; it ends what it can end itself. The
// runner, told so as the channel's last word, has the machine released by its provider.
#include <fmt/format.h>

#include "runtime/engine/calls.hpp"
#include "runtime/engine/run_impl.hpp"
#include "runtime/engine/simulation.hpp"
#include "runtime/loop/together.hpp"

namespace rille::engine {

namespace {
constexpr std::int64_t patience_ms = 10'000;  // with each of several; one alone may still be coming up
}  // namespace

// Not worth another machine, or minutes of waiting for this one.
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

Task<void> Calls::wake(std::string lease_id) {
  if (run_.config_.simulation) co_return;
  (void)co_await known_client(std::move(lease_id), closed_.token());
}

Task<void> Calls::follow(std::string lease_id, std::int64_t generation, std::shared_ptr<agent::AgentClient> agent) {
  auto alive = run_.alive_;
  Result<> broken = co_await agent->wait_broken(closed_.token());
  if (!*alive || broken || broken.error().code != "idle") co_return;
  if (!idle_.insert({lease_id, generation}).second) co_return;  // there was another connection
  clients_.erase(lease_id);
  Result<> turn = co_await enter(lease_id, closed_.token());    // whoever wants another machine waits for the end
  if (!turn) co_return;
  run_.event("idle", Value().set("lease", lease_id).set("generation", generation)
                         .set("message", broken.error().message));
  lease::Manager::Event event = [this, alive](const std::string& e, Value data) {
    if (*alive) run_.event(e, std::move(data));
  };
  store::Fence fence = run_.fence();
  Result<> ended = co_await leases_->end_idle(lease_id, generation, std::move(event), std::move(fence));
  if (*alive) leave(lease_id);
  if (*alive && !ended)                  // whoever uses it next, or the reaper, meets it gone
    run_.event("warning", Value().set("what", "an idle machine could not be released")
                              .set("message", ended.error().message));
}

}  // namespace rille::engine
