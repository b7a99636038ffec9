// Going back in a record: a fork copies the record's beginning, an invalidation drops the record's end. Both cut the
// record between two completions: the run really was in that state, and continues as if it had been killed there.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/base/id.hpp"
#include "runtime/core/store/audit.hpp"
#include "runtime/workflow/engine/engine.hpp"
#include "runtime/workflow/engine/entries.hpp"
#include "runtime/workflow/engine/run_lock.hpp"

namespace rille::engine {

namespace {

// The fields of an entry that a cut needs.
struct Mark {
  std::int64_t seq = 0, started_us = 0, ended_us = 0;
  std::string key, source, lease;  // lease: its id if the entry is a successful rent, or made a volume of a scope
  bool volume = false;
};

// The id of the lease row for a recorded rent. If the fork rented anew, it has its own row; otherwise the row is that
// of the run from which the record was copied.
Result<std::string> row_of(store::Db& db, const std::string& run, const Mark& rent, std::string recorded) {
  std::string own = lease::Manager::lease_id(run, rent.key);
  RILLE_CHECK(db.query("SELECT 1 FROM leases WHERE id=?", {own}, [&](const store::Row&) { recorded = own; }));
  return recorded;
}

Result<bool> is_kept_row(store::Db& db, const std::string& volume) {
  bool kept = false;
  RILLE_CHECK(
      db.query("SELECT json_extract(r.request,'$.extra.volume.keep') FROM requests r JOIN leases l ON l.number=r.lease "
               "WHERE l.id=?",
               {volume}, [&](const store::Row& row) { kept = row.integer(0) != 0; }));
  return kept;
}

Result<std::vector<Mark>> marks_of(store::Db& db, const std::string& run, std::int64_t number) {
  std::vector<Mark> out;
  RILLE_CHECK(db.query(fmt::format("SELECT id-?1, started_us, ended_us, {}, source, "
                                   "CASE WHEN kind IN ('rent','volume') THEN value END, kind='volume' FROM entries "
                                   "WHERE id>=?1 AND id<?2 ORDER BY id",
                                   key_sql),
                       {entry_id(number, 0), entry_id(number + 1, 0)}, [&](const store::Row& row) {
                         Mark m;
                         m.seq = row.integer(0);
                         m.started_us = row.integer(1);
                         m.ended_us = row.integer(2);
                         m.key = row.text(3);
                         m.source = row.text(4);
                         m.volume = row.integer(6) != 0;
                         if (!row.null(5))
                           if (Result<Value> v = Value::from_json(row.text(5))) m.lease = v->text("lease");
                         out.push_back(std::move(m));
                       }));
  for (Mark& m : out) {
    if (m.lease.empty()) continue;
    RILLE_TRY(m.lease, row_of(db, run, m, m.lease));
    if (!m.volume) continue;
    RILLE_TRY(const bool kept, is_kept_row(db, m.lease));
    if (kept) m.lease.clear();  // the home's: no cut concerns it
  }
  return out;
}

// Finds an entry that has begun but is not completed. For a cut it comes after all completed entries.
Result<std::optional<Mark>> begun_mark(store::Db& db, std::int64_t number, const std::string& key) {
  std::optional<Mark> out;
  RILLE_CHECK(db.query(fmt::format("SELECT source FROM begun WHERE run=? AND {}=?", key_sql), {number, key},
                       [&](const store::Row& row) {
                         out.emplace();
                         out->seq = out->started_us = out->ended_us = std::numeric_limits<std::int64_t>::max();
                         out->key = key;
                         out->source = row.text(0);
                       }));
  return out;
}

struct Machine {
  std::string name, state;
  std::int64_t released_us = 0;
};

Result<std::map<std::string, Machine>> machines_of(store::Db& db, const std::vector<Mark>& marks) {
  std::map<std::string, Machine> out;
  for (const Mark& m : marks)
    if (!m.lease.empty())
      RILLE_CHECK(
          db.query("SELECT name,state,released_us FROM leases WHERE id=?", {m.lease}, [&](const store::Row& row) {
            out[m.lease] = {row.text(0), row.text(1), row.integer(2)};
          }));
  return out;
}

Error no_entry(const RunRow& run, const std::string& key, const std::vector<Mark>& marks) {
  std::vector<std::string> known;
  for (const Mark& m : marks)
    if (known.size() < 10'000) known.push_back(m.key);
  std::string near = did_you_mean(key, known);
  return make_error(ErrorKind::invalid, fmt::format("run {} has no entry '{}'", run.id, key),
                    near.empty() ? fmt::format("its keys are in the first column of `rille show {}`", run.id)
                                 : fmt::format("did you mean {}?", near));
}

constexpr std::int64_t everything = std::numeric_limits<std::int64_t>::max();

// Creates the fork's own lease in place of the original run's lease: a row that will get a machine, and the setups.
Result<> copy_lease(store::Db& db, const std::string& fork, const Mark& rent, std::int64_t cut_id,
                    std::int64_t now_us) {
  std::string own = lease::Manager::lease_id(fork, rent.key);
  RILLE_CHECK(
      db.run("INSERT INTO leases(id,run,name,scope,generation,provider,state,token,tag,price_micros_per_hour,"
             "created_us,expires_us,released_us,cap_micros_per_hour,disk_micros_per_hour,reserved_micros,replacing) "
             "SELECT ?1,?2,name,scope,0,provider,'released','','',price_micros_per_hour,?3,?3+expires_us-created_us,"
             "?3,cap_micros_per_hour,disk_micros_per_hour,0,'forked from '||run FROM leases WHERE id=?4",
             {own, fork, now_us, rent.lease}));
  RILLE_CHECK(
      db.run("INSERT INTO requests(lease,request,options) SELECT last_insert_rowid(),request,options "
             "FROM requests WHERE lease=(SELECT number FROM leases WHERE id=?)",
             {rent.lease}));
  return db.run(
      "INSERT INTO setups(lease,n,spec,generation,entry) SELECT ?1,n,spec,0,0 FROM setups "
      "WHERE lease=?2 AND entry<?3",
      {own, rent.lease, cut_id});
}

}  // namespace

struct Engine::CutPoint {
  Cut cut;
  std::int64_t number = 0, end_id = 0;  // number: the run's number; end_id: id of the first dropped entry
  std::vector<Mark> open;               // rents of the leases that are open at the cut and will be rented anew
};

// Finds the place of a cut. If a lease was open at the cut and cannot be used, the cut moves to before the lease's
// rent. It was open unless it was released before the last kept completion or before the first dropped entry began.
Result<Engine::CutPoint> Engine::cut_at(const RunRow& row, const std::string& key, Open open) const {
  if (row.mode != "durable")
    return make_error(ErrorKind::state,
                      fmt::format("run {} is an interactive session, of which no steps are recorded", row.id),
                      "fork and invalidate work only on runs of scripts");
  store::Db& db = journal_->reader();
  CutPoint place;
  RILLE_TRY(place.number, run_number(db, row.id));
  RILLE_TRY(std::vector<Mark> marks, marks_of(db, row.id, place.number));
  auto at = std::find_if(marks.begin(), marks.end(), [&](const Mark& m) { return m.key == key; });
  std::optional<Mark> first;
  if (at != marks.end()) {
    first = *at;
  } else {
    RILLE_TRY(first, begun_mark(db, place.number, key));
  }
  if (!first) return no_entry(row, key, marks);
  RILLE_TRY(auto machines, machines_of(db, marks));
  Cut& cut = place.cut;
  for (bool moved = true; moved;) {
    moved = false;
    place.open.clear();
    std::int64_t closed_us = first->started_us;
    for (const Mark& m : marks)
      if (m.seq < first->seq) closed_us = std::max(closed_us, m.ended_us);
    for (const Mark& m : marks) {
      if (m.seq >= first->seq || m.lease.empty()) continue;
      const Machine& machine = machines[m.lease];
      bool held = machine.state == "live" || machine.state == "resizing" || machine.state == "creating" ||
                  machine.state == "intent";
      if (open == Open::keep && held) continue;
      if (machine.state == "released" && machine.released_us <= closed_us) continue;
      // A fork cannot have the data of a volume, so it makes the volume itself.
      if (open == Open::rerent && !machine.state.empty() && !m.volume) {
        place.open.push_back(m);
        continue;
      }
      cut.because_of = machine.name.empty() ? m.lease : machine.name;
      first = m;
      moved = true;
      break;
    }
  }
  place.end_id = first->seq == everything ? entry_id(place.number + 1, 0) : entry_id(place.number, first->seq);
  cut.run = row.id;
  cut.key = first->key;
  cut.source = first->source;
  for (const Mark& m : marks) ++(m.seq < first->seq ? cut.kept : cut.dropped);
  for (const Mark& m : place.open) cut.rented_anew.push_back(machines[m.lease].name);
  return place;
}

Async<Cut> Engine::fork(std::string id, std::string key, bool rerent) {
  RILLE_CO_TRY(RunRow from, run(id));
  RILLE_CO_TRY(CutPoint place, cut_at(from, key, rerent ? Open::rerent : Open::undo));
  Cut cut = place.cut;
  std::int64_t now = loop_.clock().wall_us();
  cut.run = new_run_id(now);
  std::string seed = from.seed.empty() ? from.id : from.seed;
  store::Journal::Write write = [place, now, seed, forked = cut.run, old = from.id,
                                 at = cut.key](store::Db& db) -> Result<> {
    RILLE_CHECK(
        db.run("INSERT INTO runs(id,script,mode,state,epoch,args,created_us,updated_us,host,pid,forked_from,seed,"
               "tag,host_modules) SELECT ?1,script,mode,'suspended',1,args,?2,?2,host,0,?3,?4,tag,host_modules FROM "
               "runs WHERE id=?5",
               {forked, now, old + " " + at, seed, old}));
    RILLE_CHECK(db.run("INSERT INTO sources(run,module,sha256) SELECT ?1,module,sha256 FROM sources WHERE run=?2",
                       {forked, old}));
    RILLE_TRY(std::int64_t number, run_number(db, forked));
    RILLE_CHECK(db.run(
        "INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,"
        "error,blob) SELECT id-?1+?2,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,"
        "value,error,blob FROM entries WHERE id>=?1 AND id<?3",
        {entry_id(place.number, 0), entry_id(number, 0), place.end_id}));
    for (const Mark& rent : place.open) RILLE_CHECK(copy_lease(db, forked, rent, place.end_id, now));
    Value told;
    told.set("event", "forked").set("from", old).set("key", at);
    return store::append_event(db, forked, now, "forked", told.to_json());
  };
  RILLE_CO_CHECK(co_await journal_->commit(std::move(write)));
  co_return cut;
}

namespace {

// Drops the entries from the id `from` on, and their rows in other tables. Called inside a transaction.
Result<> forget_from(store::Db& db, const std::string& run, std::int64_t number, std::int64_t from,
                     const std::string& key) {
  std::int64_t end = entry_id(number + 1, 0);
  // Drop the rows of operations that had begun and not completed.
  RILLE_CHECK(db.run(fmt::format("DELETE FROM begun WHERE run=?1 AND ({}=?4 "
                                 "OR fiber IN (SELECT fiber FROM entries WHERE id>=?2 AND id<?3) "
                                 "OR started_us>=(SELECT ended_us FROM entries WHERE id=?2))",
                                 key_sql),
                     {number, from, end, key}));
  // Signals that dropped entries took return to the inbox.
  RILLE_CHECK(db.run(fmt::format("UPDATE inbox SET taken_by=NULL WHERE run=?1 AND taken_by IN "
                                 "(SELECT {} FROM entries WHERE id>=?2 AND id<?3 AND kind='signal')",
                                 key_sql),
                     {run, from, end}));
  // Leases of dropped rents will be rented again: their rows continue with the next generation, as those of volumes do.
  RILLE_CHECK(db.run(
      "UPDATE leases SET live_us=NULL WHERE state='released' AND id IN "
      "(SELECT json_extract(value,'$.lease') FROM entries WHERE id>=?1 AND id<?2 AND kind='rent' AND value NOT NULL)",
      {from, end}));
  RILLE_CHECK(db.run("DELETE FROM setups WHERE entry>=? AND entry<?", {from, end}));
  return db.run("DELETE FROM entries WHERE id>=? AND id<?", {from, end});
}

}  // namespace

Async<Cut> Engine::invalidate(std::string id, std::string key) {
  RILLE_CO_TRY(RunRow row, run(id));
  RILLE_CO_TRY(RunLock lock, RunLock::take(run_home(row.id), row.id));
  RILLE_CO_TRY(CutPoint place, cut_at(row, key, Open::keep));
  const Cut& cut = place.cut;
  std::int64_t now = loop_.clock().wall_us();
  store::Journal::Write write = [run = row.id, place, now, at = cut.key](store::Db& db) -> Result<> {
    RILLE_CHECK(forget_from(db, run, place.number, place.end_id, at));
    const std::int64_t seq = place.end_id - entry_id(place.number, 0);
    // If some entries after a cancel are kept, the cancel stays, and its cleanup continues. A deadline that has passed
    // is removed, because the resumed run would end at once.
    RILLE_CHECK(db.run(
        "UPDATE runs SET epoch=epoch+1, state='suspended', result=NULL, error=NULL, ended_us=NULL, updated_us=?1, "
        "pid=0, cancel_reason=CASE WHEN cancel_after<?2-1 THEN cancel_reason END, "
        "cancel_after=CASE WHEN cancel_after<?2-1 THEN cancel_after END, "
        "deadline_us=CASE WHEN deadline_us>?1 THEN deadline_us END WHERE id=?3",
        {now, seq, run}));
    Value told;
    told.set("event", "invalidated").set("key", at);
    return store::append_event(db, run, now, "invalidated", told.to_json());
  };
  RILLE_CO_CHECK(co_await journal_->commit(std::move(write)));
  co_return cut;
}

Result<std::string> Engine::failed_at(const std::string& id) const {
  RILLE_TRY(RunRow row, run(id));
  if (!row.error || row.state == "diverged" || row.error->kind == ErrorKind::cancelled)
    return make_error(
        ErrorKind::state, fmt::format("run {} has not failed: it is {}", row.id, row.state),
        fmt::format("resume it with `rille resume {0}`, or drop its steps from KEY on with `rille invalidate {0} KEY`",
                    row.id));
  // A program with a non-zero exit code has a result and no error; the run's error was made from that result.
  const bool by_exit = row.error->code.starts_with("exit ");
  std::string key;
  RILLE_CHECK(read_entries(journal_->reader(), row.id, nullptr, [&](Entry e) {
    const bool failed = e.error && e.error->kind == row.error->kind && e.error->message == row.error->message;
    if (failed || (by_exit && e.kind == "exec" && e.name == row.error->operation)) key = key_of(e);
  }));
  if (!key.empty()) return key;
  return make_error(
      ErrorKind::state,
      fmt::format("run {} failed in the script itself, not in a step or call: {}", row.id, row.error->message),
      fmt::format("drop the steps from KEY on with `rille invalidate {0} KEY`, then `rille resume {0} --with NEW.lua`; "
                  "the keys: `rille show {0}`",
                  row.id));
}

}  // namespace rille::engine
