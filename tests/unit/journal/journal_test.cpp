#include "runtime/core/store/journal.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/unit/journal/runs.hpp"
#include "tests/unit/store/temp_dir.hpp"

using namespace rille;
using namespace rille::store;

namespace {

std::int64_t count(Journal& journal, const char* sql) {
  std::int64_t n = -1;
  REQUIRE(journal.reader().query(sql, {}, [&](const Row& row) { n = row.integer(0); }).ok());
  return n;
}

}  // namespace

TEST_CASE("commits are durable in order and share transactions") {
  TempDir dir;
  auto loop = Loop::create().value();
  auto journal = Journal::open(*loop, dir.file("journal.db")).value();
  std::vector<int> order;
  int done = 0;
  for (int i = 0; i < 64; ++i)
    journal->commit_then([i](Db& db) { return add_run(db, std::to_string(i), 1); }, {},
                         [&, i](Result<> r) {
                           CHECK(r.ok());
                           order.push_back(i);
                           ++done;
                         });
  loop->run_until([&] { return done == 64; });
  CHECK(std::is_sorted(order.begin(), order.end()));
  CHECK(count(*journal, "SELECT count(*) FROM runs") == 64);
}

TEST_CASE("one failing write does not take its neighbours with it") {
  TempDir dir;
  auto loop = Loop::create().value();
  auto journal = Journal::open(*loop, dir.file("journal.db")).value();
  int good = 0, bad = 0;
  for (const char* id : {"a", "b", "a", "c"})
    journal->commit_then([id](Db& db) { return add_run(db, id, 1); }, {}, [&](Result<> r) { ++(r.ok() ? good : bad); });
  loop->run_until([&] { return good + bad == 4; });
  CHECK(good == 3);
  CHECK(bad == 1);
}

TEST_CASE("a group that has taken long leaves the rest to the next, and a failure what follows it") {
  TempDir dir;
  const std::string path = dir.file("journal.db");
  auto loop = Loop::create().value();
  auto journal = Journal::open(*loop, path).value();
  std::vector<std::int64_t> durable;  // the durable count that each of them observes
  std::vector<int> order;
  const auto write = [&](const std::string& id, bool slow) {
    return [&, id, slow](Db& db) -> Result<> {
      RILLE_TRY(const auto outside, Db::open(path, true));
      const auto note = [&](const Row& row) { durable.push_back(row.integer(0)); };
      RILLE_CHECK(outside->query("SELECT count(*) FROM runs", {}, note));
      const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(slow ? 20 : 0);
      while (std::chrono::steady_clock::now() < until) std::this_thread::yield();
      return add_run(db, id, 1);
    };
  };
  int good = 0;
  for (const auto& [n, id, slow] : {std::tuple(0, "a", true), {1, "b", false}, {2, "a", false}, {3, "c", false}})
    journal->commit_then(write(id, slow), {}, [&, n = n](Result<> r) {
      order.push_back(n);
      good += r.ok();
    });
  loop->run_until([&] { return order.size() == 4; });
  CHECK(good == 3);
  CHECK(order == std::vector<int>{0, 1, 2, 3});
  REQUIRE(durable.size() >= 4);
  CHECK(durable.front() == 0);
  CHECK(durable[1] == 1);      // b came when the first group was full
  CHECK(durable.back() == 2);  // and c after the one that failed, with a and b
  CHECK(std::is_sorted(durable.begin(), durable.end()));
}

TEST_CASE("a fenced write of an older epoch is refused and leaves nothing") {
  TempDir dir;
  auto loop = Loop::create().value();
  auto journal = Journal::open(*loop, dir.file("journal.db")).value();
  REQUIRE(run_blocking(*loop, journal->commit([](Db& db) { return add_run(db, "r", 2); })).ok());
  auto write = [](Db& db) { return db.run("UPDATE runs SET state='done' WHERE id='r'"); };
  auto refused = run_blocking(*loop, journal->commit(write, Fence{"r", 1}));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().kind == ErrorKind::state);
  CHECK(count(*journal, "SELECT count(*) FROM runs WHERE state='done'") == 0);
  CHECK(run_blocking(*loop, journal->commit(write, Fence{"r", 2})).ok());
}

TEST_CASE("lazy rows are written with the next commit, and at the end") {
  TempDir dir;
  auto loop = Loop::create().value();
  {
    auto journal = Journal::open(*loop, dir.file("journal.db")).value();
    journal->enqueue([](Db& db) { return add_run(db, "lazy", 1); });
    REQUIRE(run_blocking(*loop, journal->commit([](Db& db) { return add_run(db, "now", 1); })).ok());
    CHECK(count(*journal, "SELECT count(*) FROM runs") == 2);
    journal->enqueue([](Db& db) { return add_run(db, "last", 1); });
  }
  auto again = Journal::open(*loop, dir.file("journal.db")).value();
  CHECK(count(*again, "SELECT count(*) FROM runs") == 3);
  again->enqueue([](Db& db) { return add_run(db, "last", 1); });
  CHECK_FALSE(again->flush().ok());
}

TEST_CASE("a long log is emptied at the end, so that the next process need not read it") {
  TempDir dir;
  auto loop = Loop::create().value();
  auto journal = Journal::open(*loop, dir.file("journal.db")).value();
  for (int i = 0; i < 200; ++i)
    REQUIRE(run_blocking(*loop, journal->commit([i](Db& db) { return add_run(db, std::to_string(i), 1); })).ok());
  CHECK(std::filesystem::file_size(dir.file("journal.db-wal")) > 512 << 10);
  journal.reset();
  CHECK(std::filesystem::file_size(dir.file("journal.db-wal")) == 0);
  auto again = Journal::open(*loop, dir.file("journal.db")).value();
  CHECK(count(*again, "SELECT count(*) FROM runs") == 200);
}

TEST_CASE("an idle writer extends the log's file, and the zeros are not read as rows") {
  TempDir dir;
  auto loop = Loop::create().value();
  const std::string log = dir.file("journal.db-wal");
  for (int i = 0; i < 3; ++i) {
    auto journal = Journal::open(*loop, dir.file("journal.db")).value();
    REQUIRE(run_blocking(*loop, journal->commit([i](Db& db) { return add_run(db, std::to_string(i), 1); })).ok());
    for (int tries = 0; tries < 1000 && std::filesystem::file_size(log) < 2 << 20; ++tries)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    REQUIRE(std::filesystem::file_size(log) >= 2 << 20);
    auto other = Db::open(dir.file("journal.db"), false).value();  // another process's view
    REQUIRE(add_run(*other, "other" + std::to_string(i), 1).ok());
    REQUIRE(run_blocking(*loop, journal->commit([i](Db& db) { return add_run(db, std::to_string(9 - i), 1); })).ok());
    CHECK(count(*journal, "SELECT count(*) FROM runs") == 3 * (i + 1));
  }
  CHECK(std::filesystem::file_size(log) >= 2 << 20);  // there is little in it
  CHECK(Journal::open(*loop, dir.file("journal.db")).value()->check().ok());
}

TEST_CASE("commits go on after the loop has dropped what was queued") {
  TempDir dir;
  auto loop = Loop::create().value();
  auto journal = Journal::open(*loop, dir.file("journal.db")).value();
  journal->commit_then([](Db& db) { return add_run(db, "a", 1); }, {}, [](const Result<>&) {});
  loop->abandon_tasks();
  REQUIRE(run_blocking(*loop, journal->commit([](Db& db) { return add_run(db, "b", 1); })).ok());
  CHECK(count(*journal, "SELECT count(*) FROM runs") == 2);
}

TEST_CASE("a file that is no journal, or of a newer format, is refused with a way out") {
  TempDir dir;
  auto loop = Loop::create().value();
  std::ofstream(dir.file("bad.db")) << std::string(8192, 'x');
  auto bad = Journal::open(*loop, dir.file("bad.db"));
  REQUIRE_FALSE(bad.ok());
  CHECK(bad.error().kind == ErrorKind::integrity);
  CHECK_FALSE(bad.error().hint.empty());
  {
    auto fresh = Db::open(dir.file("new.db"), false).value();
    REQUIRE(fresh->script("PRAGMA user_version=99").ok());
  }
  auto newer = Journal::open(*loop, dir.file("new.db"));
  REQUIRE_FALSE(newer.ok());
  CHECK(newer.error().kind == ErrorKind::config);
}

TEST_CASE("processes that create the journal at the same moment all open it") {
  for (int round = 0; round < 20; ++round) {
    TempDir dir;
    std::atomic<int> ready{0};
    std::vector<std::string> said(6);
    std::vector<std::thread> openers;
    for (std::string& text : said)
      openers.emplace_back([&] {
        auto loop = Loop::create().value();
        for (++ready; ready < static_cast<int>(said.size());) std::this_thread::yield();
        if (auto journal = Journal::open(*loop, dir.file("journal.db")); !journal.ok()) text = journal.error().message;
      });
    for (std::thread& t : openers) t.join();
    for (const std::string& text : said) CHECK(text == "");
  }
}
