// The journal of a simulation: no thread, no file; a death between transactions loses only what was queued.
#include <catch2/catch.hpp>

#include "runtime/core/store/journal.hpp"
#include "tests/unit/journal/runs.hpp"

using namespace rille;
using namespace rille::store;

namespace {
std::string runs(Journal& journal) {
  std::string out;
  REQUIRE(journal.reader().query("SELECT id FROM runs ORDER BY number", {}, [&](const Row& r) { out += r.text(0); }));
  return out;
}
}  // namespace

TEST_CASE("a journal in memory answers in order, and keeps a failing write to itself") {
  VirtualTime time;
  auto loop = Loop::create_virtual(time).value();
  auto disk = Journal::make_disk().value();
  std::string answers;
  {
    auto journal = Journal::in_memory(*loop, disk);
    for (const char* id : {"a", "b", "a", "c"})
      journal->commit_then([id](Db& db) { return add_run(db, id, 1); }, {},
                           [&](Result<> r) { answers += r ? "y" : "n"; });
    CHECK(runs(*journal).empty());
    loop->run_until([&] { return answers.size() == 4; });
    CHECK(answers == "yyny");
    store::Journal::Write stale = [](Db& db) { return add_run(db, "d", 1); };
    CHECK(run_blocking(*loop, journal->commit(stale, Fence("a", 0))).error().kind == ErrorKind::state);
  }
  CHECK(runs(*Journal::in_memory(*loop, disk)) == "abc");
}

TEST_CASE("lazy rows are written within 5 ms, or with the next commit, or at the end") {
  VirtualTime time;
  auto loop = Loop::create_virtual(time).value();
  auto disk = Journal::make_disk().value();
  auto journal = Journal::in_memory(*loop, disk);
  auto add = [](const char* id) { return [id](Db& db) { return add_run(db, id, 1); }; };
  journal->enqueue(add("a"));
  (void)run_blocking(*loop, sleep_for(*loop, 4));
  CHECK(runs(*journal).empty());
  (void)run_blocking(*loop, sleep_for(*loop, 4));
  CHECK(runs(*journal) == "a");
  journal->enqueue(add("b"));
  (void)run_blocking(*loop, journal->commit(add("c")));
  CHECK(runs(*journal) == "abc");
  journal->enqueue(add("d"));
  journal.reset();
  CHECK(runs(*Journal::in_memory(*loop, disk)) == "abcd");
}

TEST_CASE("a process that dies before a transaction has written nothing, one that dies after it never hears of it") {
  for (bool after : {false, true}) {
    VirtualTime time;
    auto loop = Loop::create_virtual(time).value();
    auto disk = Journal::make_disk().value();
    bool answered = false;
    {
      auto journal = Journal::in_memory(*loop, disk, [&](bool written) { return written != after; });
      journal->commit_then([](Db& db) { return add_run(db, "a", 1); }, {}, [&](Result<>) { answered = true; });
      loop->run_until([&] { return answered; });
      journal->enqueue([](Db& db) { return add_run(db, "b", 1); });
    }
    CHECK_FALSE(answered);
    CHECK(runs(*Journal::in_memory(*loop, disk)) == (after ? "a" : ""));
  }
}
