// Ends a run without its script: releases the leases in its rows.
#include "runtime/workflow/engine/engine.hpp"
#include "runtime/workflow/engine/run_lock.hpp"

namespace rille::engine {

namespace {
constexpr std::int64_t attempts_max = 5, pause_ms = 1000;
}

Async<> Engine::abandon_children(std::string id, bool diverged, lease::Manager::Event event) {
  RILLE_CO_TRY(std::vector<RunRow> started, children(id));
  for (const RunRow& child : started)
    if (refuse_ended(child) && !alive(child.id) && (diverged || child.state != "diverged"))
      RILLE_CO_CHECK(co_await abandon(child.id, event));
  co_return success();
}

Async<> Engine::abandon(std::string id, lease::Manager::Event event) {
  RILLE_CO_TRY(RunRow row, run(id));
  RILLE_CO_CHECK(refuse_ended(row));
  RILLE_CO_TRY(RunLock lock, locks_ ? RunLock::take(*locks_, row.id) : RunLock::take(run_home(row.id), row.id));
  RILLE_CO_TRY(row, run(row.id));
  RILLE_CO_CHECK(refuse_ended(row));  // it may have ended before the lock was taken
  // Raising the run's epoch makes the journal reject later writes of the process that ran it before.
  store::Journal::Write raise = [run = row.id, now = loop_.clock().wall_us()](store::Db& db) {
    return db.run("UPDATE runs SET epoch=epoch+1, state='cleanup', updated_us=?, pid=0 WHERE id=?", {now, run});
  };
  RILLE_CO_CHECK(co_await journal_->commit(std::move(raise)));
  RILLE_CO_TRY(row, run(row.id));
  store::Fence fence(row.id, row.epoch);
  std::optional<Error> trouble;
  RILLE_CO_CHECK(co_await abandon_children(row.id, true, event));
  for (std::int64_t attempt = 1; attempt <= attempts_max; ++attempt) {
    if (attempt > 1) RILLE_CO_CHECK(co_await sleep_for(loop_, pause_ms));
    trouble.reset();
    RILLE_CO_TRY(std::vector<lease::Lease> held, leases_->of_run(row.id));
    for (auto l = held.rbegin(); l != held.rend(); ++l) {
      if ((!l->billable() && !l->between_machines()) || l->detached) continue;
      if (Result<> r = co_await leases_->release(l->id, event, fence); !r) trouble = r.error();
    }
    if (!trouble) break;
  }
  if (trouble) co_return *trouble;
  RILLE_CO_CHECK(co_await leases_->reaper().sweep(row.id, event));
  store::Journal::Write end = [run = row.id, now = loop_.clock().wall_us()](store::Db& db) {
    return db.run("UPDATE runs SET state='cancelled', updated_us=?, ended_us=? WHERE id=?", {now, now, run});
  };
  co_return co_await journal_->commit(std::move(end), fence);
}

}  // namespace rille::engine
