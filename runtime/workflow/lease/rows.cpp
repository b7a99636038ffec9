#include "runtime/workflow/lease/rows.hpp"

#include <fmt/format.h>

#include "runtime/workflow/lease/tally.hpp"
#include "runtime/workflow/provider/texts.hpp"

namespace rille::lease {

namespace {

// Reads the columns that the queries of read_leases() and read_brief() share, in their order.
void read_into(Lease& l, const store::Row& row) {
  l.id = row.text(0);
  l.run = row.text(1);
  l.name = row.text(2);
  l.scope = row.text(3);
  l.generation = row.integer(4);
  l.provider = row.text(5);
  l.state = row.text(6);
  l.token = row.text(8);
  l.tag = row.text(9);
  l.machine_id = row.text(11);
  l.price_micros_per_hour = row.integer(12);
  l.created_us = row.integer(13);
  l.send_by_us = row.integer(14);
  l.live_us = row.integer(15);
  l.expires_us = row.integer(16);
  l.released_us = row.integer(17);
  l.detached = row.integer(18) != 0;
  l.error = row.text(19);
  l.seen.state = l.state;
  l.seen.generation = l.generation;
  l.seen.epoch = row.integer(20);
  l.cap_micros_per_hour = row.integer(22);
  l.disk_micros_per_hour = row.integer(23);
  l.reserved_micros = row.integer(24);
  l.replacing = row.text(25);
  l.run_tag = row.text(26);
  l.taken_us = row.null(27) ? 0 : row.integer(27);
  l.number = row.integer(28);
}

}  // namespace

Result<std::vector<Lease>> read_leases(store::Db& db, std::string_view where,
                                       std::initializer_list<store::SqlValue> values) {
  std::vector<Lease> out;
  Result<> parsed;
  constexpr const char* columns =
      "SELECT id,run,name,scope,generation,provider,state,"
      "(SELECT request FROM requests WHERE requests.lease=leases.number),token,tag,machine,machine_id,"
      "price_micros_per_hour,created_us,send_by_us,live_us,expires_us,released_us,detached,error,"
      "(SELECT epoch FROM runs WHERE runs.id=leases.run),"
      "(SELECT options FROM requests WHERE requests.lease=leases.number),cap_micros_per_hour,disk_micros_per_hour,"
      "reserved_micros,replacing,(SELECT tag FROM runs WHERE runs.id=leases.run),"
      "(SELECT deadline_us FROM notices n WHERE n.lease=leases.id AND n.generation=leases.generation),number "
      "FROM leases ";
  const std::string sql = std::string(columns).append(where);
  RILLE_CHECK(db.query(sql, values, [&](const store::Row& row) {
    Lease& l = out.emplace_back();
    read_into(l, row);
    auto read = [&](int column, auto from_value, auto store) {
      Result<Value> v = Value::from_json(row.text(column));
      auto typed = v ? from_value(*v) : decltype(from_value(*v))(v.error());
      if (typed) store(std::move(typed).value());
      else
        parsed = make_error(ErrorKind::integrity,
                            "the journal's row of lease " + l.id + " is not valid: " + typed.error().message,
                            "restore journal.db from a backup, or end the machine in its provider's console");
    };
    auto request = [&l](const Value& v) -> Result<provider::CreateRequest> {
      if (!v["change"].is_null()) { RILLE_TRY(l.change, Change::from_value(v["change"])); }
      return provider::CreateRequest::from_value(v);
    };
    read(7, request, [&](provider::CreateRequest r) { l.request = std::move(r); });
    auto as_it_is = [](const Value& v) { return Result<Value>(v); };
    read(21, as_it_is, [&](Value v) { l.options = std::move(v); });
    if (!row.null(10)) read(10, provider::Machine::from_value, [&](provider::Machine m) { l.machine = std::move(m); });
  }));
  if (!parsed) return std::move(parsed).error();
  for (Lease& l : out) { RILLE_TRY(l.tenures, read_tenures(db, l.number)); }
  return out;
}

Result<bool> read_brief(store::Db& db, const std::string& id, Lease& into) {
  bool found = false;
  RILLE_CHECK(db.query(
      "SELECT l.id,l.run,l.name,'',l.generation,l.provider,l.state,NULL,'',l.tag,NULL,l.machine_id,"
      "l.price_micros_per_hour,l.created_us,l.send_by_us,l.live_us,l.expires_us,l.released_us,l.detached,l.error,"
      "r.epoch,NULL,l.cap_micros_per_hour,l.disk_micros_per_hour,l.reserved_micros,l.replacing,r.tag,NULL,l.number "
      "FROM leases l JOIN runs r ON r.id=l.run WHERE l.id=?",
      {id}, [&](const store::Row& row) {
        found = true;
        read_into(into, row);
      }));
  return found;
}

namespace {

Result<> check_seen(store::Db& db, const Lease& l) {
  Lease::Seen now;
  RILLE_CHECK(db.query(
      "SELECT leases.state,leases.generation,runs.epoch FROM leases JOIN runs ON runs.id=leases.run WHERE leases.id=?",
      {l.id}, [&](const store::Row& row) {
        now = {row.text(0), row.integer(1), row.integer(2)};
      }));
  if (now.state == l.seen.state && now.generation == l.seen.generation &&
      (now.state.empty() || now.epoch == l.seen.epoch))
    return {};
  auto shown = [](const Lease::Seen& s) {
    return s.state.empty() ? std::string("not there")
                           : fmt::format("{} (generation {}, runner {})", s.state, s.generation, s.epoch);
  };
  Error e = make_error(ErrorKind::state,
                       fmt::format("another process has changed lease '{}' ({}): it is {} now, and was {}", l.name,
                                   l.id, shown(now), shown(l.seen)),
                       "nothing was written; see its state with `rille leases --all`");
  e.code = "lease_moved";
  e.resource = l.id;
  return e;
}

store::SqlValue or_null(const std::string& s) {
  return s.empty() ? store::SqlValue() : store::SqlValue(std::string_view(s));
}
store::SqlValue or_null(std::int64_t us) { return us ? store::SqlValue(us) : store::SqlValue(); }

// The error if the UPDATE changed no row although the row matches `seen`.
Error unwritten(const Lease& l) {
  return make_error(ErrorKind::internal, fmt::format("the row of lease '{}' ({}) could not be written", l.name, l.id),
                    "nothing was written; this is a bug of Rille: please report it");
}

// Whether a write must write all columns: for a new generation, and for a change of the machine's type, which also
// changes the request, the price and the reservation. Otherwise only the changing columns are written.
bool is_whole(const Lease& l) {
  return l.seen.state.empty() || l.seen.generation != l.generation || l.change || l.seen.state == "resizing";
}

// Whether this write stores the provider's answer to the create call.
bool is_answered(const Lease& l) { return l.machine && l.state == "live" && l.seen.state != "live"; }

std::string request_of(const Lease& l) {
  if (!l.change) return provider::text_of(l.request);
  return l.request.to_value().set("change", l.change->to_value()).to_json();
}

// The request changes only with the next generation or a change of type.
Result<> write_request(store::Db& db, const Lease& l, const RowTexts& texts, bool first) {
  if (first)
    return db.run("INSERT INTO requests(lease,request,options) VALUES(last_insert_rowid(),?,?)",
                  {texts.request, texts.options});
  RILLE_CHECK(db.run("UPDATE requests SET request=?2,options=?3 WHERE lease=(SELECT number FROM leases WHERE id=?1)",
                     {l.id, texts.request, texts.options}));
  if (db.changes() != 1) return unwritten(l);
  return {};
}

// The value of the column `open`: 1 for a lease that is not released, otherwise NULL, as the table's schema describes.
store::SqlValue open_of(const Lease& l) { return l.billable() ? store::SqlValue(std::int64_t{1}) : store::SqlValue(); }

Result<> write_generation(store::Db& db, const Lease& l, const RowTexts& texts) {
  const bool first = l.seen.state.empty();
  if (!first) RILLE_CHECK(check_seen(db, l));
  constexpr const char* add =
      "INSERT OR IGNORE INTO leases(id,run,name,scope,generation,provider,state,token,tag,machine,machine_id,"
      "price_micros_per_hour,created_us,send_by_us,live_us,expires_us,released_us,detached,error,"
      "cap_micros_per_hour,disk_micros_per_hour,reserved_micros,replacing,open) "
      "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
  constexpr const char* renew =
      "UPDATE leases SET run=?2,name=?3,scope=?4,generation=?5,provider=?6,state=?7,token=?8,tag=?9,machine=?10,"
      "machine_id=?11,price_micros_per_hour=?12,created_us=?13,send_by_us=?14,live_us=?15,expires_us=?16,"
      "released_us=?17,detached=?18,error=?19,cap_micros_per_hour=?20,disk_micros_per_hour=?21,reserved_micros=?22,"
      "replacing=?23,open=?24 WHERE id=?1";
  RILLE_CHECK(db.run(first ? add : renew, {l.id,
                                           l.run,
                                           l.name,
                                           l.scope,
                                           l.generation,
                                           l.provider,
                                           l.state,
                                           l.token,
                                           l.tag,
                                           or_null(texts.machine),
                                           or_null(l.machine_id),
                                           l.price_micros_per_hour,
                                           l.created_us,
                                           or_null(l.send_by_us),
                                           or_null(l.live_us),
                                           l.expires_us,
                                           or_null(l.released_us),
                                           std::int64_t{l.detached},
                                           or_null(l.error),
                                           l.cap_micros_per_hour,
                                           l.disk_micros_per_hour,
                                           l.reserved_micros,
                                           or_null(l.replacing),
                                           open_of(l)}));
  if (db.changes() == 1) return write_request(db, l, texts, first);
  RILLE_CHECK(check_seen(db, l));
  return unwritten(l);
}

// Writes the changing columns of a row. If `fenced`, the run's epoch is not compared here, which saves a fifth of the
// time: the journal has compared the fence once for all rows of the transaction. The column `open` is written only if
// its value changes, because the write would also update its index.
Result<> write_move(store::Db& db, const Lease& l, const RowTexts& texts, bool fenced) {
  constexpr const char* move =
      "UPDATE leases SET state=?5,machine=COALESCE(?6,machine),machine_id=?7,send_by_us=?8,live_us=?9,expires_us=?10,"
      "released_us=?11,detached=?12,error=?13,replacing=?14{} WHERE number=?1 AND state=?2 AND generation=?3{} AND "
      "(?4 IS NULL OR (SELECT epoch FROM runs WHERE runs.id=leases.run)=?4)";
  static const std::string stays = fmt::format(move, "", " AND open IS ?15");
  static const std::string changes = fmt::format(move, ",open=?15", "");
  const bool was_open = l.seen.state != "released";
  RILLE_TRY(const std::int64_t number, number_of(db, l));
  RILLE_CHECK(
      db.run(was_open == l.billable() ? stays : changes,
             {number, l.seen.state, l.seen.generation, fenced ? store::SqlValue() : l.seen.epoch, l.state,
              or_null(texts.machine), or_null(l.machine_id), or_null(l.send_by_us), or_null(l.live_us), l.expires_us,
              or_null(l.released_us), std::int64_t{l.detached}, or_null(l.error), or_null(l.replacing), open_of(l)}));
  if (db.changes() == 1) return {};
  RILLE_CHECK(check_seen(db, l));
  return unwritten(l);
}

}  // namespace

Result<> write_ending(store::Db& db, const Lease& l) {
  RILLE_CHECK(db.run("UPDATE leases SET state='releasing',replacing=NULL WHERE number=? AND state=? AND generation=?",
                     {l.number, l.seen.state, l.seen.generation}));
  if (db.changes() != 1) return unwritten(l);
  return {};
}

bool is_moved(const Error& e) { return e.code == "lease_moved"; }

// The journal refuses an outdated fence with an error of kind `state`; disk errors have other kinds.
bool is_lost(const Error& e) { return e.kind == ErrorKind::state; }

bool covers(const store::Fence& fence, const Lease& l) { return fence.run == l.run && fence.epoch == l.seen.epoch; }

RowTexts texts_of(const Lease& l) {
  const bool whole = is_whole(l);
  RowTexts texts;
  if (whole) texts.request = request_of(l), texts.options = l.options.to_json();
  if (l.machine && (whole || is_answered(l))) texts.machine = provider::text_of(*l.machine);
  return texts;
}

Result<> write_lease(store::Db& db, const Lease& l, bool fenced) { return write_lease(db, l, texts_of(l), fenced); }

Result<> write_lease(store::Db& db, const Lease& l, const RowTexts& texts, bool fenced, const Ending& ending) {
  if (is_whole(l)) RILLE_CHECK(write_generation(db, l, texts));
  else RILLE_CHECK(write_move(db, l, texts, fenced));
  return record_tenure(db, l, ending);
}

Result<> write_switch(store::Db& db, const Lease& lease) {
  return db.run(
      "UPDATE requests SET request=json_set(request,'$.expires_wall_us',?) "
      "WHERE lease=(SELECT number FROM leases WHERE id=? AND generation=?)",
      {lease.request.expires_wall_us, lease.id, lease.generation});
}

}  // namespace rille::lease
