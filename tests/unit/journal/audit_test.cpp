#include "runtime/core/store/audit.hpp"

#include <catch2/catch.hpp>
#include <filesystem>

#include "runtime/core/store/journal.hpp"

using namespace rille;
using namespace rille::store;

namespace {

struct TrailFile {
  std::string path;
  std::unique_ptr<Loop> loop = Loop::create().value();
  std::unique_ptr<Journal> journal;
  TrailFile() {
    path = std::filesystem::temp_directory_path() / "rille-audit-XXXXXX";
    REQUIRE(mkdtemp(path.data()));
    journal = Journal::open(*loop, path + "/journal.db").value();
    for (int i = 0; i < 5; ++i) change([i](Db& db) { return append_event(db, "r", i, "rent", R"({"name":"box"})"); });
  }
  ~TrailFile() {
    journal.reset();
    std::filesystem::remove_all(path);
  }
  void change(Journal::Write write) { REQUIRE(run_blocking(*loop, journal->commit(std::move(write))).ok()); }
  void sql(const char* text) {
    change([text](Db& db) { return db.run(text); });
  }
  Trail check(std::string_view kept = "") { return check_trail(journal->reader(), kept).value(); }
};

}  // namespace

TEST_CASE("an unchanged trail is complete, and its kept hashes are found") {
  TrailFile f;
  Trail t = f.check();
  CHECK(t.rows == 5);
  CHECK_FALSE(t.broken);
  CHECK(t.head.size() == 64);
  CHECK(f.check(t.head).met);
  CHECK(f.check(t.head.substr(0, 8)).met);
  CHECK_FALSE(f.check("00000000").met);
}

TEST_CASE("each alteration of the trail shows at its row") {
  struct Case {
    const char* sql;
    std::int64_t row;
  };
  const Case cases[] = {
      {"UPDATE events SET data='{}' WHERE id=3", 3},
      {"UPDATE events SET at_us=9 WHERE id=1", 1},
      {"UPDATE events SET event='live' WHERE id=5", 5},
      {"UPDATE events SET run='' WHERE id=2", 2},
      {"DELETE FROM events WHERE id=2", 3},
      {"INSERT INTO events SELECT 9,run,at_us,event,data,hash FROM events WHERE id=4", 9},
  };
  for (const Case& c : cases) {
    INFO(c.sql);
    TrailFile f;
    f.sql(c.sql);
    CHECK(f.check().broken == c.row);
  }
}

TEST_CASE("rows cut off at the end are detected with a kept later hash") {
  TrailFile f;
  std::string kept = f.check().head;
  f.sql("DELETE FROM events WHERE id>3");
  CHECK_FALSE(f.check().broken);
  CHECK_FALSE(f.check(kept).met);
}
