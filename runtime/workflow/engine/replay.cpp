#include "runtime/workflow/engine/replay.hpp"

#include <fmt/format.h>

namespace rille::engine {

Result<Replay> Replay::load(store::Db& db, const std::string& run, const store::Blobs* blobs) {
  Replay out;
  Result<> twice;
  RILLE_CHECK(read_entries(db, run, blobs, [&](Entry e) {
    Key key{e.fiber, e.pos};
    auto [it, added] = out.entries_.emplace(std::move(key), std::move(e));
    if (!added)
      twice = make_error(
          ErrorKind::integrity,
          fmt::format("the journal has two entries at {} {} of run {}", it->first.first, it->first.second, run),
          "restore journal.db from a backup, or start a new run");
    else if (it->second.completed()) out.order_.push_back(&it->second);
  }));
  RILLE_CHECK(std::move(twice));
  std::int64_t after = 0;
  std::string reason;
  RILLE_CHECK(db.query("SELECT cancel_after,cancel_reason FROM runs WHERE id=? AND cancel_after IS NOT NULL", {run},
                       [&](const store::Row& row) { after = row.integer(0), reason = row.text(1); }));
  if (!reason.empty()) {
    RILLE_TRY(Value why, Value::from_json(reason));
    out.cancel_ = PlannedCancel{after, error_from_value(why), true};
  }
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
