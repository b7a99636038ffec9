// Removes a run's record and files. Two things stay: the rows of the run's leases, which month and tag budgets count,
// and the audit trail, whose hash chain must not break.
#include "runtime/workflow/engine/remove.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "runtime/core/base/run_state.hpp"
#include "runtime/core/store/blobs.hpp"
#include "runtime/workflow/engine/entries.hpp"
#include "runtime/workflow/engine/run_lock.hpp"

namespace rille::engine {

namespace {

// The ids of the run and all its descendants, the run first.
Result<std::vector<std::string>> with_children(store::Db& db, const std::string& run) {
  std::vector<std::string> out;
  RILLE_CHECK(db.query(
      "WITH RECURSIVE these(id) AS (SELECT ?1 UNION SELECT runs.id FROM runs JOIN these ON runs.parent=these.id) "
      "SELECT id FROM these",
      {run}, [&](const store::Row& row) { out.push_back(row.text(0)); }));
  return out;
}

Result<> may_go(store::Db& db, const std::string& run) {
  std::string state, parent, lease, name;
  RILLE_CHECK(db.query("SELECT state,parent FROM runs WHERE id=?", {run}, [&](const store::Row& row) {
    state = row.text(0);
    parent = row.text(1);
  }));
  if (!run_has_ended(state))
    return make_error(ErrorKind::state, fmt::format("run {} has not ended: it is {}", run, state),
                      fmt::format("end it first: rille cancel {}", parent.empty() ? run : parent));
  // A kept volume is the home's: it stays.
  RILLE_CHECK(
      db.query("SELECT id,name FROM leases WHERE run=? AND state<>'released' AND NOT (detached AND EXISTS (SELECT 1 "
               "FROM requests "
               "WHERE lease=leases.number AND json_type(request,'$.extra.volume') IS NOT NULL)) LIMIT 1",
               {run}, [&](const store::Row& row) {
                 lease = row.text(0);
                 name = row.text(1);
               }));
  if (lease.empty()) return {};
  return make_error(ErrorKind::state, fmt::format("run {} still has a rented machine: {} ({})", run, name, lease),
                    fmt::format("release it first: rille release {}", lease));
}

Result<> forget(store::Db& db, const std::string& run) {
  RILLE_TRY(std::int64_t number, run_number(db, run));
  RILLE_CHECK(db.run("DELETE FROM entries WHERE id>=? AND id<?", {entry_id(number, 0), entry_id(number + 1, 0)}));
  RILLE_CHECK(db.run("DELETE FROM begun WHERE run=?", {number}));
  RILLE_CHECK(db.run("DELETE FROM sources WHERE run=?", {run}));
  RILLE_CHECK(db.run("DELETE FROM inbox WHERE run=?", {run}));
  RILLE_CHECK(db.run("DELETE FROM permits WHERE run=?", {run}));
  RILLE_CHECK(db.run("DELETE FROM watched WHERE run=?", {run}));
  return db.run("UPDATE runs SET state='removed', args='{}', result=NULL, error=NULL WHERE id=?", {run});
}

// Deletes large values and sources that no record refers to; forks share them with the run they were copied from. Runs
// in a transaction, so that no row or value is written at the same time. This transaction is separate from the one that
// removes the run, because deleted files cannot be rolled back.
Result<> sweep(store::Db& db, const std::string& home) {
  RILLE_CHECK(db.run("DELETE FROM blobs WHERE sha256 NOT IN (SELECT sha256 FROM sources)"));
  return store::Blobs(home + "/blobs").sweep([&](const std::string& name) -> Result<bool> {
    bool named = false;
    RILLE_CHECK(
        db.query("SELECT 1 FROM entries WHERE blob=? LIMIT 1", {name}, [&](const store::Row&) { named = true; }));
    return named;
  });
}

}  // namespace

Async<> remove_run(Engine& engine, std::string id) {
  RILLE_CO_TRY(RunRow row, engine.run(id));
  if (row.state == "removed")
    co_return make_error(ErrorKind::state, fmt::format("run {} has been removed already", row.id),
                         fmt::format("what it cost is kept: rille cost {}", row.id));
  if (!row.parent.empty())
    co_return make_error(
        ErrorKind::state,
        fmt::format("run {} was started by run {} and is removed together with that run", row.id, row.parent),
        fmt::format("remove that run: rille rm {}", row.parent));
  auto gone = std::make_shared<std::vector<std::string>>();
  store::Journal::Write write = [gone, run = row.id](store::Db& db) -> Result<> {
    RILLE_TRY(*gone, with_children(db, run));
    for (const std::string& one : *gone) {
      RILLE_CHECK(check_run_id(one));
      RILLE_CHECK(may_go(db, one));
    }
    for (const std::string& one : *gone) RILLE_CHECK(forget(db, one));
    return {};
  };
  RILLE_CO_CHECK(co_await engine.journal().commit(std::move(write)));
  if (engine.home() == in_memory_home) co_return success();
  for (const std::string& one : *gone) {
    const std::string folder = engine.home() + "/runs/" + one;
    std::error_code failed;
    std::filesystem::remove_all(folder, failed);
    if (failed) co_return errno_error("remove", folder, failed.value());
  }
  store::Journal::Write rest = [home = engine.home()](store::Db& db) { return sweep(db, home); };
  co_return co_await engine.journal().commit(std::move(rest));
}

}  // namespace rille::engine
