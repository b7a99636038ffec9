#include "runtime/core/store/transaction.hpp"

#include <catch2/catch.hpp>

#include "runtime/core/store/journal.hpp"
#include "tests/unit/store/temp_dir.hpp"

using namespace rille;
using namespace rille::store;

namespace {

Transaction::Record record(const std::string& token) { return {token, "run", "main/add#1"}; }

std::int64_t count(const std::string& path) {
  auto t = Transaction::begin(path, record(""));
  REQUIRE(t.ok());
  return (*t)->query("SELECT count(*) AS n FROM t", Value()).value().as_array()->at(0).integer("n");
}

void make(const std::string& path) {
  auto t = Transaction::begin(path, record(""));
  REQUIRE(t.ok());
  REQUIRE((*t)->exec("CREATE TABLE t(v)", Value()).ok());
  REQUIRE((*t)->commit(Value(), 1).ok());
}

}  // namespace

TEST_CASE("a transaction that was committed is found by its token, one that was not is not") {
  TempDir dir;
  std::string path = dir.file("a.db");
  make(path);
  {
    auto t = Transaction::begin(path, record("one"));
    REQUIRE(t.ok());
    CHECK_FALSE((*t)->found());
    REQUIRE((*t)->exec("INSERT INTO t VALUES(1)", Value()).ok());
  }
  CHECK(count(path) == 0);
  for (int i = 0; i < 2; ++i) {
    auto t = Transaction::begin(path, record("one"));
    REQUIRE(t.ok());
    CHECK((*t)->found().has_value() == (i == 1));
    if (i == 1) CHECK(*(*t)->found() == Value("result"));
    else REQUIRE((*t)->exec("INSERT INTO t VALUES(1)", Value()).value() == 1);
    if (i == 0) REQUIRE((*t)->commit(Value("result"), 1).ok());
  }
  CHECK(count(path) == 1);
}

TEST_CASE("one transaction at a time; the other comes back later") {
  TempDir dir;
  std::string path = dir.file("a.db");
  auto first = Transaction::begin(path, record("one"));
  REQUIRE(first.ok());
  auto second = Transaction::begin(path, record("two"));
  REQUIRE_FALSE(second.ok());
  CHECK(second.error().kind == ErrorKind::state);
  CHECK(second.error().retryable);
  (*first)->roll_back();
  CHECK((*first)->exec("CREATE TABLE t(v)", Value()).error().kind == ErrorKind::state);
  CHECK(Transaction::begin(path, record("two")).ok());
}

TEST_CASE("what was rolled back inside of the body cannot be committed") {
  TempDir dir;
  std::string path = dir.file("a.db");
  make(path);
  auto t = Transaction::begin(path, record("one"));
  REQUIRE(t.ok());
  REQUIRE((*t)->exec("CREATE UNIQUE INDEX i ON t(v); INSERT INTO t VALUES(1)", Value()).ok());
  CHECK((*t)->exec("INSERT OR ROLLBACK INTO t VALUES(1)", Value()).error().kind == ErrorKind::invalid);
  CHECK((*t)->exec("INSERT INTO t VALUES(2)", Value()).error().kind == ErrorKind::state);
  CHECK((*t)->commit(Value(), 1).error().kind == ErrorKind::state);
  CHECK(count(path) == 0);
}

TEST_CASE("the journal is no place for a script's tables") {
  TempDir dir;
  auto loop = std::move(Loop::create()).value();
  REQUIRE(Journal::open(*loop, dir.file("journal.db")).ok());
  auto t = Transaction::begin(dir.file("journal.db"), record("one"));
  REQUIRE_FALSE(t.ok());
  CHECK(t.error().kind == ErrorKind::invalid);
}
