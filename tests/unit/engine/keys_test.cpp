// Keys: fiber path/name#n. No two places of a run share one, whatever its names are.
#include <catch2/catch.hpp>
#include <set>

#include "runtime/workflow/engine/entries.hpp"
#include "tests/unit/engine/world.hpp"

using namespace rille;
using namespace rille::engine;
using namespace rille::engine::test;

TEST_CASE("a lease whose name looks like a path is not that of a fiber") {
  World world;
  std::set<std::string> leases, paths;
  auto script = [&](Run& run, CppGuest& guest, World&) -> CppGuest::Body {
    CppGuest::Body inner = [&](FiberId g) -> Async<Value> {
      paths.insert(run.path(g));
      RILLE_CO_TRY(LeaseView box, co_await run.rent(g, "box", Value(), "test"));
      leases.insert(box.id);
      co_return Value();
    };
    CppGuest::Body outer = [&run, &guest, &leases, inner](FiberId g) -> Async<Value> {
      RILLE_CO_TRY(LeaseView box, co_await run.rent(g, "box", Value(), "test"));
      leases.insert(box.id);
      RILLE_CO_TRY(FiberId child, run.spawn(g, "v", guest.function(inner), Value()));
      RILLE_CO_CHECK(co_await run.join(g, child));
      co_return Value();
    };
    return [&run, &guest, &leases, inner, outer](FiberId f) -> Async<Value> {
      RILLE_CO_TRY(LeaseView box, co_await run.rent(f, "w#1/box", Value(), "test"));
      leases.insert(box.id);
      RILLE_CO_TRY(FiberId child, run.spawn(f, "w", guest.function(outer), Value()));
      RILLE_CO_TRY(FiberId named, run.spawn(f, "w#1/v", guest.function(inner), Value()));
      RILLE_CO_CHECK(co_await run.join(f, child));
      RILLE_CO_CHECK(co_await run.join(f, named));
      co_return Value();
    };
  };
  const auto out = Process::run(world, script);
  REQUIRE(out);
  REQUIRE(out->ok());
  CHECK(leases.size() == 4);
  CHECK(paths.size() == 2);
  CHECK(world.creates.size() == 4);
}

TEST_CASE("a key is unique, the same in C++ and in SQL, and leaves ordinary names as they are") {
  CHECK(make_key("main", "data/corpus", 1) == "main/data/corpus#1");
  CHECK(make_key("main", "50%/w#1", 2) == "main/50%/w#1#2");
  CHECK(make_key("main", "w#1/box", 1) == "main/w#1%2Fbox#1");
  TempDir dir;
  auto db = store::Db::open(dir.path + "/keys.db", false).value();
  REQUIRE(db->run("CREATE TABLE begun(fiber TEXT, name TEXT, occurrence INTEGER)"));
  std::set<std::string> keys;
  std::size_t places = 0;
  for (const char* fiber : {"main", "main/w#1", "main/w#1/v#1", "main/w#1%2Fv#1"})
    for (const char* name : {"box", "v#1/box", "w#1/box", "w#1/v#1/box", "w#1%2Fbox", "w#1%252Fbox", "w%2Fbox", "w/box",
                             "w#1", "#", "#/", "#%", "/", "%", "", "a%2Fb#1/c", "a/b#1%c"})
      for (std::int64_t n : {1, 11}) {
        ++places;
        keys.insert(make_key(fiber, name, n));
        REQUIRE(db->run("INSERT INTO begun VALUES(?,?,?)", {std::string_view(fiber), std::string_view(name), n}));
      }
  CHECK(keys.size() == places);
  std::set<std::string> of_rows;
  REQUIRE(db->query("SELECT " + std::string(key_sql) + " FROM begun", {},
                    [&](const store::Row& row) { of_rows.insert(row.text(0)); }));
  CHECK(of_rows == keys);
}
