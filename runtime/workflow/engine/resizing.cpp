// Changes the type of a lease's machine; the lease keeps its name, its generation and its disk. The requests to the
// provider and crash recovery are in runtime/workflow/lease/resize.cpp.
#include <fmt/format.h>

#include "runtime/workflow/engine/calls.hpp"
#include "runtime/workflow/engine/connector.hpp"
#include "runtime/workflow/engine/run_impl.hpp"

namespace rille::engine {

Async<LeaseView> Calls::resize(std::string lease_id, Value options, CancelToken token) {
  const auto life = run_.life_.watch();
  RILLE_CO_TRY(options, connector_->adapt_resize(std::move(options)));
  RILLE_CO_CHECK(co_await enter(lease_id, LeaseSession::Phase::resizing, token));
  Result<> done = co_await resize_alone(lease_id, std::move(options), token);
  if (life.alive()) leave(lease_id);
  if (!done) co_return done.error();
  co_return view(lease_id);
}

Async<> Calls::resize_alone(std::string lease_id, Value options, CancelToken token) {
  const auto life = run_.life_.watch();
  RILLE_CO_TRY(std::optional<lease::Lease> before, leases_->find(lease_id));
  if (!before || !before->has_machine()) co_return not_live(lease_id, before);
  lease::Resize wanted;
  wanted.may = [this, life, lease_id, name = before->name]() -> Result<> {
    if (life.ended()) return make_error(ErrorKind::cancelled, "the run has ended");
    if (users(lease_id) <= 0) return {};
    return make_error(ErrorKind::state, fmt::format("a call runs on '{}', and box:resize would end it", name),
                      "wait for the call first, or cancel it");
  };
  if (before->state == "live") RILLE_CO_CHECK(wanted.may());
  wanted.id = lease_id;
  wanted.options = std::move(options);
  wanted.fence = run_.fence();
  bool asked = before->state == "resizing";
  lease::Manager::Event event = [this, &asked](const std::string& e, Value data) {
    asked = true;
    run_.event(e, std::move(data));
  };
  Result<lease::Lease> now = co_await leases_->resize(std::move(wanted), std::move(event), token);
  const Result<> done = now ? success() : Result<>(now.error());
  if (life.ended()) co_return done;
  if (asked) {  // the machine was stopped: its agent has ended, its address may differ, and only its disk is kept
    LeaseSession& session = this->session(lease_id);
    ++session.resizes;
    session.agent.reset();
    connector_->forget(before->machine_id);
  }
  if (!done) co_return done;
  run_.alert_budgets();
  if (asked && now->request.idle_after_ms > 0) run_.loop().spawn(wake(lease_id));
  co_return success();
}

// Whether the machine may have seemed lost only because it was stopped for a resize. Waits until no fiber changes the
// lease's machine. `before`: the value of `resizes` before the machine was checked.
Async<bool> Calls::stood_still(std::string lease_id, std::int64_t before, CancelToken token) {
  const bool moves = session(lease_id).phase != LeaseSession::Phase::steady;
  if (moves) RILLE_CO_CHECK(co_await steady(lease_id, token));
  co_return moves || session(lease_id).resizes != before;
}

// Finishes a resize that another fiber or an earlier process began. If the provider refused the resize, this succeeds,
// because the machine still exists; the fiber that asked for the resize gets the error.
Async<> Calls::end_resize(std::string lease_id, CancelToken token) {
  RILLE_CO_TRY(std::optional<lease::Lease> l, leases_->find(lease_id));
  if (!l || l->state != "resizing") co_return success();
  RILLE_CO_CHECK(co_await enter(lease_id, LeaseSession::Phase::resizing, token));
  const auto life = run_.life_.watch();
  Result<> done = success();
  RILLE_CO_TRY(l, leases_->find(lease_id));
  if (l && l->state == "resizing") {
    Value nothing;
    done = co_await resize_alone(lease_id, std::move(nothing), token);
  }
  if (life.ended()) co_return done;
  leave(lease_id);
  RILLE_CO_TRY(l, leases_->find(lease_id));
  if (!done && l && l->state == "live") co_return success();
  co_return done;
}

}  // namespace rille::engine
