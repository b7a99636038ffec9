#include "runtime/workflow/lease/tally.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "runtime/core/base/units.hpp"
#include "runtime/workflow/lease/ledger.hpp"
#include "runtime/workflow/lease/rows.hpp"
#include "runtime/workflow/lease/volumes.hpp"

namespace rille::lease {

namespace {

// SQL condition for a lease whose machine cannot cost more than was reserved: first generation, before the expiry, with
// only one price (a change of type may cost more), which is not above the cap. Most leases are like this, and their
// reservations can be added up without reading each lease. Not a volume, which outlives what is reserved for it. ?3 is
// the current time.
constexpr const char* within_reservation =
    "(open IS NOT NULL AND generation=1 AND expires_us>=?3 AND expires_us-created_us<315360000000000 AND NOT EXISTS "
    "(SELECT 1 FROM segments s WHERE "
    "s.lease=leases.number AND s.part='machine' AND (s.amount_micros IS NOT NULL OR "
    "s.micros_per_hour>leases.cap_micros_per_hour)) AND (SELECT COUNT(*) FROM segments s WHERE "
    "s.lease=leases.number AND s.part='machine')<=1)";

// The sums that one connection keeps, updated whenever the connection writes a row.
class Kept final : public store::Watcher {
 public:
  void changed(std::string_view table, std::int64_t rowid) override {
    if (table == "leases") moved.insert(rowid);
    else if (table == "runs") stale = true;  // a run is new, or its parent or tag may have changed
  }
  void rolled_back() override { stale = true; }

  struct Part {
    std::unordered_map<std::int64_t, Micros> within;  // row number -> reservation, of leases in within_reservation
    std::set<std::int64_t> others;                    // numbers of the other rows, which are read for each count
    Micros reserved = 0;                              // the sum of the reservations in `within`
    std::int64_t until_us = 0;                        // `within` is valid until then
    std::unordered_set<std::string> runs;
    bool any_run = false;  // true: counts leases of all runs that were not released before from_us
    std::int64_t from_us = 0;

    bool takes(const std::string& run, std::int64_t released_us) const {
      return any_run ? released_us == 0 || released_us >= from_us : runs.contains(run);
    }
    void take(std::int64_t row, bool is_within, Micros micros, std::int64_t expires_us) {
      if (!is_within) {
        others.insert(row);
      } else if (within.emplace(row, micros).second) {
        reserved += micros;
        until_us = std::min(until_us, expires_us);
      }
    }
    void drop(std::int64_t row) {
      others.erase(row);
      if (const auto at = within.find(row); at != within.end()) reserved -= at->second, within.erase(at);
    }
  };
  std::map<std::string, Part> parts;       // by Tally::key
  std::unordered_set<std::int64_t> moved;  // numbers of the lease rows that changed since the count
  std::int64_t version = 0;                // PRAGMA data_version at the count; it changes when another process writes
  bool stale = true;                       // everything must be recounted
};

Kept* kept_of(store::Db& db) { return dynamic_cast<Kept*>(db.watcher()); }

store::SqlValue value_of(const Tally& t) {
  if (t.number) return t.number;
  return std::string_view(t.text);
}

// A volume lives for many months: the month's budget counts what it costs from the month's start to its end.
void add_volume(Money& money, const Lease& l, std::int64_t month_us, std::int64_t now_us) {
  constexpr std::int64_t day_us = 86'400'000'000;
  (l.billable() ? money.reserved : money.spent) += month_micros(l, now_us);
  if (!l.billable()) return;
  ++money.held;
  const std::int64_t left_us = month_start_us(month_us + 40 * day_us) - now_us;
  money.reserved += cost_micros(std::max<Micros>(l.disk_micros_per_hour, 0), std::max<std::int64_t>(left_us, 0) / 1000);
}

void add(Money& money, const Lease& l, const Tally& t, std::int64_t now_us) {
  if (t.number && is_volume(l)) return add_volume(money, l, t.number, now_us);
  if (!l.billable()) {
    money.spent += l.spent_micros(now_us);
    return;
  }
  money.reserved += l.committed_micros(now_us);
  ++money.held;
}

// Updates the sums for the rows that changed. If that is not possible, drops the sums, so that they are counted again.
Result<> catch_up(store::Db& db, Kept& kept, std::int64_t now_us) {
  std::int64_t version = 0;
  RILLE_CHECK(db.query("PRAGMA data_version", {}, [&](const store::Row& row) { version = row.integer(0); }));
  if (kept.stale || kept.version != version) kept.parts.clear();
  kept.stale = false;
  kept.version = version;
  if (kept.parts.empty()) kept.moved.clear();
  static const std::string one = fmt::format(
      "SELECT run,released_us,{},reserved_micros,expires_us FROM leases WHERE rowid=?1", within_reservation);
  for (const std::int64_t rowid : std::exchange(kept.moved, {})) {
    for (auto& [key, part] : kept.parts) part.drop(rowid);
    RILLE_CHECK(db.query(one, {rowid, std::int64_t{0}, now_us}, [&](const store::Row& row) {
      for (auto& [key, part] : kept.parts)
        if (part.takes(row.text(0), row.integer(1)))
          part.take(rowid, row.integer(2) != 0, row.integer(3), row.integer(4));
    }));
  }
  return {};
}

Result<> count_anew(store::Db& db, Kept::Part& part, const Tally& t, std::int64_t now_us) {
  const store::SqlValue value = value_of(t);
  part = Kept::Part();
  part.until_us = std::numeric_limits<std::int64_t>::max();
  part.from_us = t.number;
  part.any_run = t.runs.empty();
  if (!part.any_run)
    RILLE_CHECK(db.query(t.runs, {value}, [&](const store::Row& row) { part.runs.insert(row.text(0)); }));
  return db.query(
      fmt::format("SELECT rowid,{},reserved_micros,expires_us FROM leases WHERE {}", within_reservation, t.leases),
      {value, std::int64_t{0}, now_us},
      [&](const store::Row& row) { part.take(row.integer(0), row.integer(1) != 0, row.integer(2), row.integer(3)); });
}

}  // namespace

Tally tally_of_family(const std::string& run) {
  Tally t;
  t.key = "run:" + run;
  t.text = run;
  t.runs =
      "WITH RECURSIVE family(id) AS (SELECT ?1 UNION SELECT runs.id FROM runs JOIN family ON "
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
  t.leases = "(released_us IS NULL OR released_us>=?1)";
  return t;
}

Result<> add_all(store::Db& db, Money& money, const Tally& t, const std::string& but, std::int64_t now_us) {
  const store::SqlValue value = value_of(t);
  RILLE_CHECK(db.query(fmt::format("SELECT COUNT(*),IFNULL(SUM(reserved_micros),0) FROM leases WHERE {} AND id<>?2 AND "
                                   "{}",
                                   t.leases, within_reservation),
                       {value, but, now_us}, [&](const store::Row& row) {
                         money.held += row.integer(0);
                         money.reserved += row.integer(1);
                       }));
  const std::string others = fmt::format("WHERE {} AND id<>?2 AND NOT {}", t.leases, within_reservation);
  RILLE_TRY(std::vector<Lease> leases, read_leases(db, others, {value, but, now_us}));
  for (const Lease& l : leases) add(money, l, t, now_us);
  return {};
}

Result<> add_kept(store::Db& db, Money& money, const Tally& t, std::int64_t now_us) {
  if (!kept_of(db)) db.watch(std::make_unique<Kept>());
  Kept& kept = *kept_of(db);
  // If one of the updates below fails half-way, the next call counts everything again.
  RILLE_CHECK(catch_up(db, kept, now_us));
  const auto [at, is_new] = kept.parts.try_emplace(t.key);
  Kept::Part& part = at->second;
  if (is_new || part.until_us < now_us) {  // a lease in `within` may have expired
    kept.stale = true;
    RILLE_CHECK(count_anew(db, part, t, now_us));
    kept.stale = false;
  }
  money.held += static_cast<std::int64_t>(part.within.size());
  money.reserved += part.reserved;
  for (const std::int64_t rowid : part.others) {
    RILLE_TRY(std::vector<Lease> lease, read_leases(db, "WHERE rowid=?", {rowid}));
    for (const Lease& l : lease) add(money, l, t, now_us);
  }
  return {};
}

Micros month_micros(const Lease& lease, std::int64_t now_us) {
  const std::string now = month_of(now_us);
  Micros sum = 0;
  for (const Tenure& t : lease.tenures)
    for (const auto& [month, amounts] : by_month(t, now_us))
      if (const auto dollars = amounts.find("USD"); month == now && dollars != amounts.end()) sum += dollars->second;
  return sum;
}

void touch(store::Db& db, std::int64_t number) {
  if (Kept* kept = kept_of(db)) kept->moved.insert(number);
}

}  // namespace rille::lease
