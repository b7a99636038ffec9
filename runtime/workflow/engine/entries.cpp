#include "runtime/workflow/engine/entries.hpp"

#include <fmt/format.h>

namespace rille::engine {

namespace {

Value parsed(const std::string& text, Result<>& failure) {
  Result<Value> v = Value::from_json(text);
  if (v) return std::move(v).value();
  failure = make_error(ErrorKind::integrity, "the journal holds an entry that is not valid: " + v.error().message,
                       "restore journal.db from a backup, or start a new run");
  return {};
}

// The columns that `entries` and `begun` share, in the order that read_common expects.
constexpr const char* common = "fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us";

void read_common(const store::Row& row, Entry& e) {
  e.fiber = row.text(0);
  e.pos = row.integer(1);
  e.kind = row.text(2);
  e.name = row.text(3);
  e.occurrence = row.integer(4);
  e.args_sha256 = row.text(5);
  e.attempt = row.integer(6);
  e.source = row.text(7);
  e.started_us = row.integer(8);
}

}  // namespace

std::string_view name_in_key(std::string_view name, std::string& room) {
  const std::size_t hash = name.find('#');
  if (hash == std::string_view::npos || name.find_first_of("/%", hash) == std::string_view::npos) return name;
  room.clear();
  for (char c : name) {
    if (c == '/') room += "%2F";
    else if (c == '%') room += "%25";
    else room += c;
  }
  return room;
}

std::string make_key(std::string_view fiber, std::string_view name, std::int64_t n) {
  std::string room;
  return fmt::format("{}/{}#{}", fiber, name_in_key(name, room), n);
}

std::string key_of(const EntryRow& row) { return make_key(row.fiber, row.name, row.occurrence); }

Result<std::int64_t> run_number(store::Db& db, const std::string& run) {
  std::int64_t number = 0;
  RILLE_CHECK(
      db.query("SELECT number FROM runs WHERE id=?", {run}, [&](const store::Row& row) { number = row.integer(0); }));
  if (!number)
    return make_error(ErrorKind::state, fmt::format("the journal has no run '{}'", run),
                      "list the runs with `rille ps`");
  return number;
}

Result<> write_begun(store::Db& db, QueuedEntry& r, std::int64_t attempt, std::int64_t next_us,
                     std::string_view progress) {
  if (r.wanted.load() != attempt) return {};
  r.written = true;
  return db.run(
      "INSERT INTO begun(run,fiber,pos,kind,name,occurrence,args_sha256,attempt,next_us,source,started_us,"
      "progress) VALUES(?,?,?,?,?,?,?,?,?,?,?,?) "
      "ON CONFLICT(run,fiber,pos) DO UPDATE SET attempt=excluded.attempt, next_us=excluded.next_us, "
      "progress=excluded.progress",
      {r.run, r.fiber, r.pos, r.kind, r.name, r.occurrence, r.args_sha256, attempt, next_us, r.source, r.started_us,
       progress.empty() ? store::SqlValue() : store::SqlValue(progress)});
}

Result<> write_completed(store::Db& db, const QueuedEntry& r) {
  if (r.written) RILLE_CHECK(db.run("DELETE FROM begun WHERE run=? AND fiber=? AND pos=?", {r.run, r.fiber, r.pos}));
  bool failed = !r.error.empty();
  if (r.blobs) {
    RILLE_TRY(std::string blob, r.blobs->put(r.value));
    return db.run(
        "INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,blob) "
        "VALUES(?,?,?,?,?,?,?,?,?,?,?,?)",
        {entry_id(r.run, r.seq), r.fiber, r.pos, r.kind, r.name, r.occurrence, r.args_sha256, r.attempt, r.source,
         r.started_us, r.ended_us, blob});
  }
  return db.run(
      "INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,"
      "error) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)",
      {entry_id(r.run, r.seq), r.fiber, r.pos, r.kind, r.name, r.occurrence, r.args_sha256, r.attempt, r.source,
       r.started_us, r.ended_us, failed ? store::SqlValue() : store::SqlValue(std::string_view(r.value)),
       failed ? store::SqlValue(std::string_view(r.error)) : store::SqlValue()});
}

Result<> write_plain(store::Db& db, const QueuedEntry& r) {
  return db.run(
      "INSERT INTO entries(id,fiber,pos,kind,name,occurrence,args_sha256,attempt,source,started_us,ended_us,value,"
      "error) VALUES(?,?,?,'step',?,?,'74234e98afe7498fb5daf1f36ac2d78a',1,?,?,?,?,NULL)",
      {entry_id(r.run, r.seq), r.fiber, r.pos, r.name, r.occurrence, r.source, r.started_us, r.ended_us, r.value});
}

Result<> read_entries(store::Db& db, const std::string& run, const store::Blobs* blobs,
                      const std::function<void(Entry)>& each) {
  RILLE_TRY(std::int64_t number, run_number(db, run));
  Result<> failure;
  RILLE_CHECK(db.query(fmt::format("SELECT {},ended_us,value,error,id,blob FROM entries WHERE id>=? AND id<? "
                                   "ORDER BY id",
                                   common),
                       {entry_id(number, 0), entry_id(number + 1, 0)}, [&](const store::Row& row) {
                         Entry e;
                         read_common(row, e);
                         e.run = number;
                         e.ended_us = row.integer(9);
                         if (!row.null(10)) e.value = parsed(row.text(10), failure);
                         if (!row.null(11)) e.error = error_from_value(parsed(row.text(11), failure));
                         e.seq = row.integer(12) - entry_id(number, 0);
                         if (!row.null(13)) {
                           e.blob = row.text(13);
                           Result<std::string> bytes = std::string("null");
                           if (blobs) bytes = blobs->get(e.blob);
                           if (bytes) e.value = parsed(*bytes, failure);
                           else failure = bytes.error();
                         }
                         each(std::move(e));
                       }));
  RILLE_CHECK(db.query(fmt::format("SELECT {},next_us,progress FROM begun WHERE run=?", common), {number},
                       [&](const store::Row& row) {
                         Entry e;
                         read_common(row, e);
                         e.run = number;
                         e.next_us = row.integer(9);
                         if (!row.null(10)) e.progress = parsed(row.text(10), failure);
                         each(std::move(e));
                       }));
  return failure;
}

}  // namespace rille::engine
