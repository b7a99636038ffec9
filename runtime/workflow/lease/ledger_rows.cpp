// The ledger's rows: the only file that knows the columns of `machines` and `segments`.
#include <algorithm>
#include <functional>
#include <tuple>

#include "runtime/workflow/lease/ledger.hpp"
#include "runtime/workflow/lease/manager.hpp"
#include "runtime/workflow/lease/parts.hpp"
#include "runtime/workflow/lease/tally.hpp"

namespace rille::lease {

namespace {

Result<std::int64_t> number_of(store::Db& db, const std::string& id) {
  std::int64_t number = 0;
  RILLE_CHECK(db.query("SELECT number FROM leases WHERE id=?", {id},
                       [&number](const store::Row& row) { number = row.integer(0); }));
  return number;
}

Result<> open_segment(store::Db& db, std::int64_t lease, const Lease& l, const char* part, Micros price,
                      std::int64_t from_us) {
  touch(db, lease);
  return db.run(
      "INSERT OR REPLACE INTO segments(lease,generation,machine_id,part,from_us,micros_per_hour,source) "
      "VALUES(?,?,?,?,?,?,'estimate')",
      {lease, l.generation, l.machine_id, std::string_view(part), from_us, price});
}

// The price of the lease's machine without its disk; in the provider's currency if there is no dollar price.
Price machine_price(const Lease& l) {
  return counted(l.price_micros_per_hour, l.request.offer.price_micros_per_hour, l.request.offer);
}
Price disk_price(const Lease& l) {
  const provider::Offer& o = l.request.offer;
  const Micros asked = o.disk_micros_per_gb_hour > 0 && l.request.disk_bytes > 0 ? o.disk_micros(l.request.disk_bytes)
                                                                                 : provider::price_unknown;
  return counted(l.disk_micros_per_hour, asked, o);
}

// The JSON text of a billing, with the currencies of the segments if they are not USD. Caches the last text: most are
// alike.
std::string text_of(const provider::Billing& billing, const std::string& currency, const std::string& disk_currency) {
  thread_local provider::Billing last;
  thread_local std::string text;
  if (text.empty() || billing != last) text = billing.to_value().to_json(), last = billing;
  if (currency == "USD" && disk_currency == "USD") return text;
  Value v = billing.to_value();
  if (currency != "USD") v.set("currency", currency);
  if (disk_currency != "USD") v.set("disk_currency", disk_currency);
  return v.to_json();
}

// Reads the price of the public address, which is stored under an empty machine id until the machine exists.
Result<Micros> address_micros(store::Db& db, std::int64_t lease, std::int64_t generation) {
  Micros out = 0;
  RILLE_CHECK(db.query("SELECT micros_per_hour FROM segments WHERE lease=? AND generation=? AND machine_id=''",
                       {lease, generation}, [&out](const store::Row& row) { out = row.integer(0); }));
  return out;
}

Result<> begin_tenure(store::Db& db, std::int64_t lease, const Lease& l, std::int64_t from_us, bool& begun) {
  const Price machine = machine_price(l), disk = disk_price(l);
  RILLE_CHECK(
      db.run("INSERT OR IGNORE INTO machines(lease,generation,machine_id,provider,region,billing,from_us) "
             "VALUES(?,?,?,?,?,?,?)",
             {lease, l.generation, l.machine_id, l.provider, l.request.offer.region,
              text_of(l.request.offer.billing, machine.currency, disk.currency), from_us}));
  begun = db.changes() == 1;
  if (!begun) return {};
  RILLE_CHECK(open_segment(db, lease, l, "machine", machine.micros, from_us));
  // A disk gets a segment even if its price is unknown.
  if (disk.micros) RILLE_CHECK(open_segment(db, lease, l, "disk", disk.micros, from_us));
  if (l.has_no_address) return {};
  RILLE_TRY(const Micros address, address_micros(db, lease, l.generation));
  if (address == 0) return {};  // no address: skip the INSERT, which costs four times as much as this lookup
  return db.run(
      "INSERT OR IGNORE INTO segments(lease,generation,machine_id,part,from_us,micros_per_hour,source) "
      "SELECT lease,generation,?3,part,from_us,micros_per_hour,source FROM segments WHERE lease=?1 AND "
      "generation=?2 AND machine_id=''",
      {lease, l.generation, l.machine_id});
}

// When the machine's cost begins: the creation time that the provider reports, but not before the request (most
// providers report whole seconds). If it is missing or later than the answer, the time of the request.
std::int64_t begun_us(const Lease& l) {
  const std::int64_t made = l.machine ? l.machine->created_wall_us : 0;
  return made <= l.live_us ? std::max(made, l.created_us) : l.created_us;
}

// Changes the machine's list of billing restarts, which is stored in the column `billing`, beside the first billing.
Result<> write_restarts(store::Db& db, std::int64_t lease, const Lease& l,
                        const std::function<void(Value::Array&)>& change) {
  std::string text;
  RILLE_CHECK(db.query("SELECT billing FROM machines WHERE lease=? AND generation=? AND machine_id=?",
                       {lease, l.generation, l.machine_id}, [&](const store::Row& row) { text = row.text(0); }));
  RILLE_TRY(Value billing, Value::from_json(text));
  Value::Array restarts;
  if (const Value::Array* known = billing["restarts"].as_array()) restarts = *known;
  change(restarts);
  touch(db, lease);  // tell the kept sums that the lease's cost has changed
  const std::string changed = billing.set("restarts", std::move(restarts)).to_json();
  return db.run("UPDATE machines SET billing=? WHERE lease=? AND generation=? AND machine_id=?",
                {changed, lease, l.generation, l.machine_id});
}

// A machine's billing and its restarts, parsed from the column `billing`. Caches the last one, because most machines
// are billed alike.
struct Billed {
  provider::Billing first;
  std::string currency = "USD", disk_currency = "USD";
  std::vector<Restart> restarts;
};
const Billed& billed_as(std::string text) {
  thread_local std::string last;
  thread_local Billed billed;
  if (text == last) return billed;
  billed = {};
  if (const Result<Value> read = Value::from_json(text)) {
    billed.first = provider::Billing::from_value(*read);
    billed.currency = read->text("currency", billed.currency);
    billed.disk_currency = read->text("disk_currency", billed.disk_currency);
    const Value::Array none, *restarts = (*read)["restarts"].as_array();
    for (const Value& r : restarts ? *restarts : none) {
      Restart restart;
      restart.from_us = r.integer("from_us");
      restart.billing = provider::Billing::from_value(r);
      restart.currency = r.text("currency", restart.currency);
      billed.restarts.push_back(restart);
    }
  }
  last = std::move(text);
  return billed;
}

// Merges the known price steps with new steps, which extend them or, if `whole`, replace them. Repeated prices are
// dropped.
std::vector<PriceStep> chain_of(const std::vector<PriceStep>& known, std::vector<PriceStep> steps, std::int64_t begin,
                                bool whole) {
  const std::int64_t newest = whole ? begin : known.back().from_us;
  std::vector<PriceStep> all;
  const auto add = [&all](std::int64_t from_us, Micros price) {
    if (!all.empty() && all.back().from_us == from_us) all.pop_back();
    if (all.empty() || all.back().micros_per_hour != price) all.push_back({from_us, price});
  };
  if (!whole) std::erase_if(steps, [newest](const PriceStep& s) { return s.from_us < newest; });
  const std::int64_t until = steps.empty() ? known.back().from_us + 1 : std::max(steps.front().from_us, begin);
  for (const PriceStep& s : known)
    if (s.from_us < until) add(s.from_us, s.micros_per_hour);
  for (const PriceStep& s : steps) add(std::max(s.from_us, begin), s.micros_per_hour);
  return all;
}

}  // namespace

Result<std::int64_t> number_of(store::Db& db, const Lease& l) {
  if (l.number) return l.number;
  return number_of(db, l.id);
}

Result<std::vector<Tenure>> read_tenures(store::Db& db, std::int64_t lease) {
  std::vector<Tenure> out;
  RILLE_CHECK(db.query(
      "SELECT m.generation,m.machine_id,m.provider,m.region,m.billing,m.from_us,m.to_us,m.ready_us,m.busy_us,"
      "m.busy_since_us,s.part,s.from_us,s.to_us,s.micros_per_hour,s.amount_micros FROM machines m LEFT JOIN segments s "
      "ON s.lease=m.lease AND s.generation=m.generation AND s.machine_id=m.machine_id WHERE m.lease=?",
      {lease}, [&](const store::Row& row) {
        const std::int64_t generation = row.integer(0);
        std::string machine = row.text(1);
        if (out.empty() || out.back().generation != generation || out.back().machine_id != machine) {
          Tenure& t = out.emplace_back();
          t.generation = generation;
          t.machine_id = std::move(machine);
          t.provider = row.text(2);
          t.region = row.text(3);
          const Billed& billed = billed_as(row.text(4));
          t.billing = billed.first;
          t.currency = billed.currency, t.disk_currency = billed.disk_currency;
          t.restarts = billed.restarts;
          t.from_us = row.integer(5);
          t.to_us = row.integer(6);
          t.ready_us = row.integer(7);
          t.busy_us = row.integer(8);
          t.busy_since_us = row.integer(9);
        }
        if (row.null(10)) return;
        Segment& s = out.back().segments.emplace_back();
        s.part = row.text(10);
        s.from_us = row.integer(11);
        s.to_us = row.integer(12);
        s.micros_per_hour = row.integer(13);
        if (!row.null(14)) s.amount = row.integer(14);
      }));
  // Sort in C++, not in SQL: there are few machines, and SQLite's sorter costs more than reading them.
  std::sort(out.begin(), out.end(), [](const Tenure& a, const Tenure& b) {
    return std::tie(a.generation, a.from_us, a.machine_id) < std::tie(b.generation, b.from_us, b.machine_id);
  });
  for (Tenure& t : out)
    std::stable_sort(t.segments.begin(), t.segments.end(),
                     [](const Segment& a, const Segment& b) { return a.from_us < b.from_us; });
  return out;
}

Result<> record_tenure(store::Db& db, const Lease& l) { return record_tenure(db, l, Ending()); }

namespace {

// Ends the machine's rows at the times that the release found. Each row is written only once, which saves a third of
// the time of the whole state change. With OR FAIL, SQLite need not copy each page to undo this statement alone; on
// failure the whole transaction is rolled back.
Result<> end_as_found(store::Db& db, std::int64_t lease, const Lease& l, const Ending& ending) {
  touch(db, lease);
  RILLE_CHECK(
      db.run("UPDATE OR FAIL segments SET to_us=MAX(from_us,CASE WHEN generation<>?3 OR machine_id<>?4 "
             "THEN ?2 WHEN part='machine' THEN ?5 ELSE ?6 END) WHERE lease=?1 AND to_us IS NULL",
             {lease, l.released_us, l.generation, l.machine_id, ending.machine_us, ending.all_us}));
  return db.run(
      "UPDATE OR FAIL machines SET to_us=MAX(from_us,CASE WHEN generation<>?3 OR machine_id<>?4 THEN ?2 "
      "ELSE ?5 END), busy_us=busy_us+CASE WHEN busy_since_us IS NULL THEN 0 ELSE MAX(0,?2-busy_since_us) "
      "END, busy_since_us=NULL WHERE lease=?1 AND to_us IS NULL",
      {lease, l.released_us, l.generation, l.machine_id, ending.all_us});
}

// Ends the rows of all machines of the lease at now_us.
Result<> end_tenures(store::Db& db, std::int64_t lease, std::int64_t now_us) {
  RILLE_CHECK(db.run("UPDATE segments SET to_us=MAX(from_us,?) WHERE lease=? AND to_us IS NULL", {now_us, lease}));
  return db.run(
      "UPDATE machines SET to_us=MAX(from_us,?1), busy_since_us=NULL, "
      "busy_us=busy_us+CASE WHEN busy_since_us IS NULL THEN 0 ELSE MAX(0,?1-busy_since_us) END "
      "WHERE lease=?2 AND to_us IS NULL",
      {now_us, lease});
}

}  // namespace

Result<> record_tenure(store::Db& db, const Lease& l, const Ending& ending) {
  if (!l.live_us || l.machine_id.empty()) return {};
  RILLE_TRY(const std::int64_t lease, number_of(db, l));
  const auto is_its = [&l](const Tenure& t) { return t.generation == l.generation && t.machine_id == l.machine_id; };
  bool begun = false;
  if (std::none_of(l.tenures.begin(), l.tenures.end(), is_its)) {
    RILLE_CHECK(begin_tenure(db, lease, l, begun_us(l), begun));
  }
  if (l.state == "released")
    return ending.all_us ? end_as_found(db, lease, l, ending) : end_tenures(db, lease, l.released_us);
  if (begun || l.seen.state != "released") return {};
  // The lease was marked as released too early: the machine still costs money, each part at its last price.
  RILLE_CHECK(
      db.run("UPDATE segments SET to_us=NULL WHERE lease=?1 AND generation=?2 AND machine_id=?3 AND "
             "amount_micros IS NULL AND to_us=(SELECT MAX(s.to_us) FROM segments s WHERE s.lease=?1 AND "
             "s.generation=?2 AND s.machine_id=?3 AND s.part=segments.part)",
             {lease, l.generation, l.machine_id}));
  return db.run("UPDATE machines SET to_us=NULL WHERE lease=? AND generation=? AND machine_id=? AND to_us IS NOT NULL",
                {lease, l.generation, l.machine_id});
}

Result<> record_stray(store::Db& db, const Lease& stray, std::int64_t now_us) {
  RILLE_TRY(const std::int64_t lease, number_of(db, stray));
  bool begun = false;
  RILLE_CHECK(begin_tenure(db, lease, stray, stray.live_us ? stray.live_us : now_us, begun));
  RILLE_CHECK(db.run("UPDATE segments SET to_us=? WHERE lease=? AND generation=? AND machine_id=? AND to_us IS NULL",
                     {now_us, lease, stray.generation, stray.machine_id}));
  return db.run("UPDATE machines SET to_us=? WHERE lease=? AND generation=? AND machine_id=? AND to_us IS NULL",
                {now_us, lease, stray.generation, stray.machine_id});
}

// Prices recorded before a change of the machine's type stay as they are.
Result<> record_prices(store::Db& db, const Lease& l, std::vector<PriceStep> steps, bool whole,
                       const std::string& currency) {
  RILLE_TRY(const std::int64_t lease, number_of(db, l));
  RILLE_TRY(const std::vector<Tenure> tenures, read_tenures(db, lease));
  const auto its = std::find_if(tenures.begin(), tenures.end(), [&l](const Tenure& t) {
    return t.generation == l.generation && t.machine_id == l.machine_id;
  });
  if (its == tenures.end() || its->to_us || its->reconciled() || its->price().currency != currency) return {};
  const std::int64_t begin = its->restarts.empty() ? its->from_us : its->restarts.back().from_us;
  std::vector<PriceStep> known;
  for (const Segment& s : its->segments)
    if (s.part == "machine" && s.from_us >= begin) known.push_back({s.from_us, s.micros_per_hour});
  if (known.empty()) return {};
  const std::vector<PriceStep> chain = chain_of(known, std::move(steps), begin, whole);
  const auto is_same = [](const PriceStep& a, const PriceStep& b) {
    return a.from_us == b.from_us && a.micros_per_hour == b.micros_per_hour;
  };
  if (!std::equal(chain.begin(), chain.end(), known.begin(), known.end(), is_same)) {
    RILLE_CHECK(
        db.run("DELETE FROM segments WHERE lease=? AND generation=? AND machine_id=? AND part='machine' AND "
               "from_us>=?",
               {lease, l.generation, l.machine_id, begin}));
    for (std::size_t i = 0; i < chain.size(); ++i) {
      RILLE_CHECK(open_segment(db, lease, l, "machine", chain[i].micros_per_hour, chain[i].from_us));
      if (i + 1 == chain.size()) break;
      RILLE_CHECK(
          db.run("UPDATE segments SET to_us=? WHERE lease=? AND generation=? AND machine_id=? AND "
                 "part='machine' AND from_us=?",
                 {chain[i + 1].from_us, lease, l.generation, l.machine_id, chain[i].from_us}));
    }
  }
  if (currency != "USD") return {};  // the column price_micros_per_hour is in dollars
  const Micros now = chain.back().micros_per_hour;
  return db.run(
      "UPDATE leases SET price_micros_per_hour=?1 WHERE number=?2 AND generation=?3 AND machine_id=?4 "
      "AND state IN ('live','releasing') AND price_micros_per_hour<>?1",
      {now, lease, l.generation, l.machine_id});
}

// Records the change of a machine's type. The time at which the changed machine became usable is not known, so it
// counts as usable from its creation.
Result<> record_change(store::Db& db, const Lease& l) {
  const Change& to = *l.change;
  RILLE_TRY(const std::int64_t lease, number_of(db, l));
  const Price price = counted(to.price_micros_per_hour, to.offer.price_micros_per_hour, to.offer);
  const auto add = [&to, &price](Value::Array& restarts) {
    Value restart = to.offer.billing.to_value().set("from_us", to.from_us);
    if (price.currency != "USD") restart.set("currency", price.currency);
    restarts.push_back(std::move(restart));
  };
  RILLE_CHECK(write_restarts(db, lease, l, add));
  RILLE_CHECK(
      db.run("UPDATE machines SET ready_us=from_us WHERE lease=? AND generation=? AND machine_id=? AND "
             "ready_us IS NULL",
             {lease, l.generation, l.machine_id}));
  return open_segment(db, lease, l, "machine", price.micros, to.from_us);
}

Result<> record_changed(store::Db& db, const Lease& l, std::int64_t from_us, std::int64_t now_us) {
  RILLE_TRY(const std::int64_t lease, number_of(db, l));
  touch(db, lease);
  return db.run(
      "UPDATE segments SET to_us=? WHERE lease=? AND generation=? AND machine_id=? AND part='machine' AND "
      "to_us IS NULL AND from_us<?",
      {now_us, lease, l.generation, l.machine_id, from_us});
}

Result<> record_restarted(store::Db& db, const Lease& l, std::int64_t from_us, std::int64_t since_us) {
  RILLE_TRY(const std::int64_t lease, number_of(db, l));
  return db.run(
      "UPDATE segments SET from_us=?5 WHERE lease=?1 AND generation=?2 AND machine_id=?3 AND part='machine' "
      "AND from_us=?4 AND from_us<?5 AND to_us IS NULL",
      {lease, l.generation, l.machine_id, from_us, since_us});
}

Result<> record_unchanged(store::Db& db, const Lease& l, std::int64_t from_us) {
  RILLE_TRY(const std::int64_t lease, number_of(db, l));
  const auto remove = [from_us](Value::Array& restarts) {
    std::erase_if(restarts, [from_us](const Value& r) { return r.integer("from_us") == from_us; });
  };
  RILLE_CHECK(write_restarts(db, lease, l, remove));
  return db.run(
      "DELETE FROM segments WHERE lease=? AND generation=? AND machine_id=? AND part='machine' AND from_us=? "
      "AND amount_micros IS NULL",
      {lease, l.generation, l.machine_id, from_us});
}

// Stores the price of the public address under an empty machine id. It is copied to the machine later.
Result<> record_address(store::Db& db, const Lease& l, Micros micros_per_hour) {
  if (micros_per_hour == 0) return {};
  RILLE_TRY(const std::int64_t lease, number_of(db, l));
  return db.run(
      "INSERT OR REPLACE INTO segments(lease,generation,machine_id,part,from_us,to_us,micros_per_hour,"
      "source) VALUES(?1,?2,'','address',?3,?3,?4,'estimate')",
      {lease, l.generation, l.created_us, micros_per_hour});
}

Result<Micros> address_micros(store::Db& db, const Lease& l) {
  RILLE_TRY(const std::int64_t lease, number_of(db, l));
  return address_micros(db, lease, l.generation);
}

Result<> record_running(store::Db& db, const std::string& id, std::int64_t since_us) {
  RILLE_TRY(const std::int64_t lease, number_of(db, id));
  touch(db, lease);
  return db.run(
      "UPDATE segments SET from_us=?2 WHERE lease=?1 AND part='machine' AND amount_micros IS NULL AND "
      "from_us<?2 AND (to_us IS NULL OR to_us>?2) AND EXISTS(SELECT 1 FROM machines m WHERE m.lease=?1 AND "
      "m.generation=segments.generation AND m.machine_id=segments.machine_id AND m.from_us=segments.from_us "
      "AND m.ready_us IS NULL AND m.to_us IS NULL)",
      {lease, since_us});
}

Result<> record_ready(store::Db& db, const std::string& id, std::int64_t now_us) {
  RILLE_TRY(const std::int64_t lease, number_of(db, id));
  return db.run("UPDATE machines SET ready_us=? WHERE lease=? AND ready_us IS NULL AND to_us IS NULL", {now_us, lease});
}

Result<> record_busy(store::Db& db, const std::string& id, bool busy, std::int64_t now_us) {
  RILLE_TRY(const std::int64_t lease, number_of(db, id));
  if (busy)
    return db.run("UPDATE machines SET busy_since_us=? WHERE lease=? AND to_us IS NULL AND busy_since_us IS NULL",
                  {now_us, lease});
  return db.run(
      "UPDATE machines SET busy_us=busy_us+MAX(0,?-busy_since_us), busy_since_us=NULL "
      "WHERE lease=? AND to_us IS NULL AND busy_since_us IS NOT NULL",
      {now_us, lease});
}

Result<> record_bill(store::Db& db, const std::string& provider, const provider::Bill& bill, std::int64_t& settled) {
  std::int64_t lease = 0, generation = 0, from_us = 0, to_us = 0;
  RILLE_CHECK(
      db.query("SELECT lease,generation,from_us,to_us FROM machines WHERE provider=? AND machine_id=? AND "
               "to_us IS NOT NULL AND EXISTS(SELECT 1 FROM segments s WHERE s.lease=machines.lease AND "
               "s.generation=machines.generation AND s.machine_id=machines.machine_id AND s.source='estimate')",
               {provider, bill.machine_id}, [&](const store::Row& row) {
                 lease = row.integer(0);
                 generation = row.integer(1);
                 from_us = row.integer(2);
                 to_us = row.integer(3);
               }));
  if (!lease) return {};
  ++settled;
  touch(db, lease);
  RILLE_CHECK(db.run("DELETE FROM segments WHERE lease=? AND generation=? AND machine_id=?",
                     {lease, generation, bill.machine_id}));
  return db.run(
      "INSERT INTO segments(lease,generation,machine_id,part,from_us,to_us,micros_per_hour,amount_micros,"
      "source) VALUES(?,?,?,'machine',?,?,0,?,'reconciled')",
      {lease, generation, bill.machine_id, from_us, to_us, bill.micros});
}

Result<std::vector<std::pair<std::string, std::string>>> unbilled(store::Db& db) {
  std::vector<std::pair<std::string, std::string>> out;
  RILLE_CHECK(
      db.query("SELECT DISTINCT m.provider,m.machine_id FROM machines m JOIN segments s USING "
               "(lease,generation,machine_id) WHERE m.to_us IS NOT NULL AND s.source='estimate' ORDER BY 1,2",
               {}, [&](const store::Row& row) { out.emplace_back(row.text(0), row.text(1)); }));
  return out;
}

}  // namespace rille::lease
