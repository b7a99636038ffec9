#include "runtime/lease/tally.hpp"

#include <fmt/format.h>

#include "runtime/lease/ledger.hpp"
#include "runtime/lease/rows.hpp"

namespace rille::lease {

namespace {

// A lease of the first generation whose machine costs no more than was reserved: before its end, at no price above its
// cap. Most are such, and need not be read one by one. ?3 is now.
constexpr const char* within_reservation =
    "(state<>'released' AND generation=1 AND expires_us>=?3 AND NOT EXISTS (SELECT 1 FROM segments s WHERE "
    "s.lease=leases.id AND s.part<>'disk' AND (s.amount_micros IS NOT NULL OR "
    "s.micros_per_hour>leases.cap_micros_per_hour)))";

// Of each tally: the sums of those within their reservations, until when that is true, and how many others there are;
// of which runs; which are the others. Temporary: they are the connection's, and a transaction that is rolled back
// takes its part in them with it. The triggers see whatever is written on this connection. They add a lease that is
// new; what else may move one in, out or among the others makes all stale.
constexpr const char* tables = R"sql(
CREATE TEMP TABLE IF NOT EXISTS tally_state (stale INTEGER NOT NULL, version INTEGER NOT NULL);
CREATE TEMP TABLE IF NOT EXISTS tally_sums (
  tally TEXT PRIMARY KEY, held INTEGER NOT NULL, reserved INTEGER NOT NULL, until_us INTEGER NOT NULL,
  others INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TEMP TABLE IF NOT EXISTS tally_runs (run TEXT, tally TEXT, PRIMARY KEY (run, tally)) WITHOUT ROWID;
CREATE TEMP TABLE IF NOT EXISTS tally_others (tally TEXT, lease TEXT, PRIMARY KEY (tally, lease)) WITHOUT ROWID;
DELETE FROM tally_state;
INSERT INTO tally_state VALUES (1, 0);

CREATE TEMP TRIGGER IF NOT EXISTS tally_lease AFTER INSERT ON main.leases
WHEN NEW.generation=1 AND NEW.state<>'released' BEGIN
  UPDATE tally_sums SET held=held+1, reserved=reserved+NEW.reserved_micros, until_us=MIN(until_us,NEW.expires_us)
    WHERE tally IN (SELECT tally FROM tally_runs WHERE run IN (NEW.run,''));
END;
CREATE TEMP TRIGGER IF NOT EXISTS tally_lease_other AFTER INSERT ON main.leases
WHEN NEW.generation<>1 OR NEW.state='released' BEGIN UPDATE tally_state SET stale=1; END;
CREATE TEMP TRIGGER IF NOT EXISTS tally_lease_again BEFORE INSERT ON main.leases
WHEN EXISTS (SELECT 1 FROM leases WHERE id=NEW.id) BEGIN UPDATE tally_state SET stale=1; END;
CREATE TEMP TRIGGER IF NOT EXISTS tally_lease_moved AFTER UPDATE OF
  id,run,state,generation,expires_us,released_us,reserved_micros,cap_micros_per_hour ON main.leases
WHEN (OLD.state='released')<>(NEW.state='released') OR OLD.generation<>NEW.generation OR
  OLD.expires_us<>NEW.expires_us OR OLD.released_us IS NOT NEW.released_us OR
  OLD.reserved_micros<>NEW.reserved_micros OR OLD.cap_micros_per_hour<>NEW.cap_micros_per_hour OR
  OLD.run<>NEW.run OR OLD.id<>NEW.id BEGIN UPDATE tally_state SET stale=1; END;
CREATE TEMP TRIGGER IF NOT EXISTS tally_lease_gone AFTER DELETE ON main.leases
BEGIN UPDATE tally_state SET stale=1; END;
CREATE TEMP TRIGGER IF NOT EXISTS tally_price AFTER INSERT ON main.segments
WHEN NEW.part<>'disk' AND (NEW.amount_micros IS NOT NULL OR
  NEW.micros_per_hour>(SELECT cap_micros_per_hour FROM leases WHERE id=NEW.lease))
BEGIN UPDATE tally_state SET stale=1; END;
CREATE TEMP TRIGGER IF NOT EXISTS tally_price_moved AFTER UPDATE OF lease,part,micros_per_hour,amount_micros
  ON main.segments BEGIN UPDATE tally_state SET stale=1; END;
CREATE TEMP TRIGGER IF NOT EXISTS tally_run AFTER INSERT ON main.runs BEGIN UPDATE tally_state SET stale=1; END;
CREATE TEMP TRIGGER IF NOT EXISTS tally_run_moved AFTER UPDATE OF id,parent,tag ON main.runs
BEGIN UPDATE tally_state SET stale=1; END;
)sql";

store::SqlValue value_of(const Tally& t) {
  if (t.number) return t.number;
  return std::string_view(t.text);
}

void add(Money& money, const Lease& l, std::int64_t now_us) {
  if (!l.billable()) {
    money.spent += l.spent_micros(now_us);
    return;
  }
  money.reserved += l.committed_micros(now_us);
  ++money.held;
}

// Forgets what was counted if that may no longer be so: by a trigger, or since another process has written.
Result<> forget_stale(store::Db& db) {
  bool stale = true;
  std::int64_t kept = 0, version = 0;
  const auto state = [&](const store::Row& row) { stale = row.integer(0) != 0, kept = row.integer(1); };
  // Not there: nothing was counted here yet, or the transaction that did it was rolled back.
  if (!db.query("SELECT stale,version FROM tally_state", {}, state)) RILLE_CHECK(db.script(tables));
  RILLE_CHECK(db.query("PRAGMA data_version", {}, [&](const store::Row& row) { version = row.integer(0); }));
  if (!stale && kept == version) return {};
  for (const char* sql : {"DELETE FROM tally_sums", "DELETE FROM tally_runs", "DELETE FROM tally_others"})
    RILLE_CHECK(db.run(sql));
  return db.run("UPDATE tally_state SET stale=0,version=?", {version});
}

Result<> count_anew(store::Db& db, const Tally& t, std::int64_t now_us) {
  const store::SqlValue value = value_of(t);
  for (const char* table : {"tally_sums", "tally_runs", "tally_others"})
    RILLE_CHECK(db.run(fmt::format("DELETE FROM {} WHERE tally=?", table), {t.key}));
  RILLE_CHECK(db.run(fmt::format("INSERT OR IGNORE INTO tally_runs SELECT id,?2 FROM ({})", t.runs), {value, t.key}));
  RILLE_CHECK(db.run(fmt::format("INSERT INTO tally_others SELECT ?2,id FROM leases WHERE {} AND NOT {}", t.leases,
                                 within_reservation), {value, t.key, now_us}));
  return db.run(fmt::format("INSERT INTO tally_sums SELECT ?2,COUNT(*),IFNULL(SUM(reserved_micros),0),"
                            "IFNULL(MIN(expires_us),9223372036854775807),"
                            "(SELECT COUNT(*) FROM tally_others WHERE tally=?2) FROM leases WHERE {} AND {}",
                            t.leases, within_reservation), {value, t.key, now_us});
}

}  // namespace

Tally tally_of_family(const std::string& run) {
  Tally t;
  t.key = "run:" + run;
  t.text = run;
  t.runs = "WITH RECURSIVE family(id) AS (SELECT ?1 UNION SELECT runs.id FROM runs JOIN family ON "
           "runs.parent=family.id AND runs.parent<>'') SELECT id FROM family";
  t.leases = "run IN (" + t.runs + ")";
  return t;
}

Tally tally_of_tag(const std::string& tag) {
  Tally t;
  t.key = "tag:" + tag;
  t.text = tag;
  t.runs = "SELECT id FROM runs WHERE tag=?1";
  t.leases = "run IN (" + t.runs + ")";
  return t;
}

Tally tally_of_month(std::int64_t now_us) {
  Tally t;
  t.number = month_start_us(now_us);
  t.key = fmt::format("month:{}", t.number);
  t.runs = "SELECT '' AS id";
  t.leases = "(released_us IS NULL OR released_us>=?1)";
  return t;
}

Result<> add_all(store::Db& db, Money& money, const Tally& t, const std::string& but, std::int64_t now_us) {
  const store::SqlValue value = value_of(t);
  RILLE_CHECK(db.query(fmt::format("SELECT COUNT(*),IFNULL(SUM(reserved_micros),0) FROM leases WHERE {} AND id<>?2 AND "
                                   "{}", t.leases, within_reservation), {value, but, now_us},
                       [&](const store::Row& row) {
                         money.held += row.integer(0);
                         money.reserved += row.integer(1);
                       }));
  const std::string others = fmt::format("WHERE {} AND id<>?2 AND NOT {}", t.leases, within_reservation);
  RILLE_TRY(std::vector<Lease> leases, read_leases(db, others, {value, but, now_us}));
  for (const Lease& l : leases) add(money, l, now_us);
  return {};
}

Result<> add_kept(store::Db& db, Money& money, const Tally& t, std::int64_t now_us) {
  std::int64_t held = 0, reserved = 0, until_us = -1, others = 0;
  const auto sums = [&](const store::Row& row) {
    held = row.integer(0);
    reserved = row.integer(1);
    until_us = row.integer(2);
    others = row.integer(3);
  };
  constexpr const char* read = "SELECT held,reserved,until_us,others FROM tally_sums WHERE tally=?";
  RILLE_CHECK(forget_stale(db));
  RILLE_CHECK(db.query(read, {t.key}, sums));
  if (until_us < now_us) {  // not counted, or one is over
    RILLE_CHECK(count_anew(db, t, now_us));
    RILLE_CHECK(db.query(read, {t.key}, sums));
  }
  money.held += held;
  money.reserved += reserved;
  if (others == 0) return {};
  RILLE_TRY(std::vector<Lease> leases,
            read_leases(db, "WHERE id IN (SELECT lease FROM tally_others WHERE tally=?)", {t.key}));
  for (const Lease& l : leases) add(money, l, now_us);
  return {};
}

}  // namespace rille::lease
