#include "runtime/core/store/audit.hpp"

#include <fmt/format.h>

#include "runtime/core/base/id.hpp"

namespace rille::store {

namespace {

// The hash of one row. Each part is prefixed with its length, so that different rows never hash the same text.
std::string link(std::string_view before, std::string_view run, std::int64_t at_us, std::string_view event,
                 std::string_view data) {
  Sha256 sha;
  const std::string at = std::to_string(at_us);
  for (std::string_view part : {before, run, std::string_view(at), event, data}) {
    sha.update(fmt::format("{}:", part.size()));
    sha.update(part);
  }
  return to_hex(sha.finish());
}

}  // namespace

Result<> append_event(Db& db, std::string_view run, std::int64_t at_us, std::string_view event, std::string_view data) {
  std::string before;
  RILLE_CHECK(
      db.query("SELECT hash FROM events ORDER BY id DESC LIMIT 1", {}, [&](const Row& row) { before = row.text(0); }));
  std::string hash = link(before, run, at_us, event, data);
  return db.run("INSERT INTO events(run,at_us,event,data,hash) VALUES(?,?,?,?,?)", {run, at_us, event, data, hash});
}

Result<Trail> check_trail(Db& db, std::string_view kept) {
  Trail trail;
  RILLE_CHECK(db.query("SELECT id,run,at_us,event,data,hash FROM events ORDER BY id", {}, [&](const Row& row) {
    ++trail.rows;
    std::string hash = row.text(5);
    if (!trail.broken && hash != link(trail.head, row.text(1), row.integer(2), row.text(3), row.text(4)))
      trail.broken = row.integer(0);
    trail.met = trail.met || (!kept.empty() && std::string_view(hash).starts_with(kept));
    trail.head = std::move(hash);
  }));
  return trail;
}

}  // namespace rille::store
