#include "runtime/engine/replay.hpp"

#include <algorithm>

namespace rille::engine {

Result<Replay> Replay::load(store::Db& db, const std::string& run) {
  Replay out;
  Result<> parsed;
  auto json = [&parsed](const std::string& text) -> Value {
    if (text.empty()) return {};
    Result<Value> v = Value::from_json(text);
    if (v) return std::move(v).value();
    parsed = make_error(ErrorKind::integrity, "the journal holds an entry that is not valid: " + v.error().message);
    return {};
  };
  RILLE_CHECK(
      db.query("SELECT "
               "fiber,pos,seq,kind,name,occurrence,args_sha256,state,attempt,next_us,cursor,value,error,"
               "source,started_us "
               "FROM entries WHERE run=?",
               {run}, [&](const store::Row& row) {
                 Entry e;
                 e.fiber = row.text(0);
                 e.pos = row.integer(1);
                 e.seq = row.null(2) ? -1 : row.integer(2);
                 e.kind = row.text(3);
                 e.name = row.text(4);
                 e.occurrence = row.integer(5);
                 e.args_sha256 = row.text(6);
                 e.state = row.text(7);
                 e.attempt = row.integer(8);
                 e.next_us = row.integer(9);
                 e.cursor = row.text(10);
                 e.value = json(row.text(11));
                 if (!row.null(12)) e.error = error_from_value(json(row.text(12)));
                 e.source = row.text(13);
                 e.started_us = row.integer(14);
                 Key key{e.fiber, e.pos};
                 out.entries_.emplace(std::move(key), std::move(e));
               }));
  RILLE_CHECK(std::move(parsed));
  for (const auto& [key, entry] : out.entries_)
    if (entry.completed()) out.order_.push_back(&entry);
  std::sort(out.order_.begin(), out.order_.end(), [](const Entry* a, const Entry* b) { return a->seq < b->seq; });
  return out;
}

const Entry* Replay::find(const std::string& fiber, std::int64_t pos) const {
  auto it = entries_.find({fiber, pos});
  return it == entries_.end() ? nullptr : &it->second;
}

const Entry* Replay::beyond(const std::string& fiber, std::int64_t pos) const {
  for (auto it = entries_.lower_bound({fiber, pos}); it != entries_.end() && it->first.first == fiber; ++it)
    if (it->second.completed()) return &it->second;
  return nullptr;
}

}  // namespace rille::engine
