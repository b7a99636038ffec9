#include "runtime/core/store/transaction.hpp"

#include <fmt/format.h>

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

TEST_CASE("an endless statement is ended by its Ask") {
  TempDir dir;
  std::string path = dir.file("a.db");
  make(path);
  const std::string endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT ";
  std::int64_t most = 0;
  int asked = 0;
  const Transaction::Ask ask = [&](std::int64_t bytes) -> Result<> {
    most = std::max(most, bytes);
    if (++asked < 1000 && bytes < 1'000'000) return {};
    return make_error(ErrorKind::timeout, "enough");
  };
  for (const std::string what : {"count(*) FROM c WHERE x < 0", "x FROM c"}) {
    auto t = Transaction::begin(path, record("one"));
    REQUIRE(t.ok());
    asked = 0;
    CHECK((*t)->query(endless + what, Value(), ask).error().message == "enough");
    asked = 0;
    CHECK((*t)->exec("INSERT INTO t " + endless + what, Value(), ask).error().message == "enough");
    CHECK((*t)->commit(Value(), 1).error().kind == ErrorKind::state);  // what it had changed is not left half done
  }
  CHECK(most > 10'000);  // the rows are counted
  CHECK(count(path) == 0);
}

TEST_CASE("a view in place of rille_steps does not block the thread") {
  TempDir dir;
  const std::string path = dir.file("a.db");
  make(path);
  const std::string endless =
      "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) AS token, 1 AS result FROM c";
  auto t = Transaction::begin(path, record("one"));
  REQUIRE(t.ok());
  REQUIRE((*t)->exec("CREATE TRIGGER e AFTER INSERT ON rille_steps BEGIN INSERT INTO t SELECT token FROM (" + endless +
                         "); END",
                     Value())
              .ok());
  CHECK((*t)->commit(Value(), 1).error().message.find("rille_steps") != std::string::npos);
  t = Transaction::begin(path, record(""));
  REQUIRE((*t)->exec("CREATE VIEW rille_steps AS " + endless, Value()).ok());
  REQUIRE((*t)->commit(Value(), 1).ok());
  t->reset();
  CHECK(Transaction::begin(path, record("one")).error().message.find("rille_steps") != std::string::npos);
}

TEST_CASE("pragmas that read the database are allowed; those that change settings are refused") {
  TempDir dir;
  const std::string path = dir.file("a.db");
  make(path);
  auto t = Transaction::begin(path, record("one"));
  REQUIRE(t.ok());
  for (const char* sql : {"PRAGMA table_info(t)", "PRAGMA user_version=3", "PRAGMA Integrity_Check"})
    CHECK((*t)->query(sql, Value()).ok());
  for (const char* name : {"hard_heap_limit=10000", "soft_heap_limit=10000", "journal_mode=OFF", "synchronous=OFF",
                           "mmap_size=1000000000", "wal_checkpoint", "schema_version=7", "temp_store_directory='/'"}) {
    const Error e = (*t)->query(std::string("PRAGMA ") + name, Value()).error();
    CHECK(e.kind == ErrorKind::invalid);
    CHECK(e.hint.find(std::string(name).substr(0, 8)) != std::string::npos);
  }
  CHECK(sqlite3_hard_heap_limit64(-1) == 0);
  CHECK((*t)->exec("COMMIT", Value()).error().hint.find("the step does that") != std::string::npos);
}

namespace {
Transaction::Bounds bounds() {
  Transaction::Bounds b;
  b.text_bytes_max = 1 << 20;
  b.maps_nothing = true;
  return b;
}

struct Bounded {  // a transaction of a run under limits
  TempDir dir;
  std::unique_ptr<Transaction> transaction;
  Bounded() {
    make(dir.file("a.db"));
    transaction = Transaction::begin(dir.file("a.db"), record("one"), bounds()).value();
  }
};

struct Connection {  // of another program
  sqlite3* db = nullptr;
  explicit Connection(const std::string& path) { REQUIRE(sqlite3_open(path.c_str(), &db) == SQLITE_OK); }
  ~Connection() { sqlite3_close(db); }
  void run(const char* sql) { REQUIRE(sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK); }
};
}  // namespace

TEST_CASE("bounded: a database in WAL mode is used without a file that is mapped into memory") {
  TempDir dir;
  const std::string path = dir.file("a.db"), shared = path + "-shm";
  make(path);
  Connection(path).run("PRAGMA journal_mode=WAL");
  std::filesystem::remove(shared);
  for (const int before : {0, 1}) {
    auto t = Transaction::begin(path, record(fmt::format("{}", before)), bounds());
    REQUIRE(t.ok());
    CHECK((*t)->query("SELECT count(*) AS n FROM t", Value()).value().to_json() ==
          fmt::format("[{{\"n\":{}}}]", before));
    REQUIRE((*t)->exec("INSERT INTO t VALUES(1)", Value()).ok());
    CHECK_FALSE(std::filesystem::exists(shared));
    REQUIRE((*t)->commit(Value(), 1).ok());
    CHECK_FALSE(std::filesystem::exists(shared));
  }
  Connection other(path);
  other.run("SELECT * FROM t");
  CHECK(std::filesystem::exists(shared));
  const auto refused = Transaction::begin(path, record("2"), bounds());
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().kind == ErrorKind::state);
  CHECK(refused.error().retryable);
  CHECK(count(path) == 2);  // without bounds both may be open
}

TEST_CASE("bounded: what a transaction writes is asked for before it is committed") {
  const std::string mode = GENERATE("WAL", "DELETE");
  const int rows = GENERATE(100, 20'000);  // the first fits into SQLite's cache
  TempDir dir;
  const std::string path = dir.file("a.db");
  make(path);
  Connection(path).run(("PRAGMA journal_mode=" + mode).c_str());
  std::int64_t counted = 0, most = 0;
  auto limited = bounds();
  limited.disk = [&](std::int64_t bytes) -> Result<> {
    counted += bytes;
    if (counted > most) return make_error(ErrorKind::quota, "full");
    return {};
  };
  const auto fill = [&](const std::string& token, int n) -> Result<> {
    RILLE_TRY(const auto t, Transaction::begin(path, record(token), limited));
    RILLE_CHECK(t->exec(fmt::format("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c LIMIT {}) "
                                    "INSERT INTO t SELECT randomblob(1000) FROM c",
                                    n),
                        Value()));
    return t->commit(Value(), 1);
  };
  most = rows * 500;
  const Result<> full = fill("one", rows);
  REQUIRE_FALSE(full.ok());
  CHECK(full.error().message == "full");
  CHECK(count(path) == 0);
  const std::int64_t beyond = counted;
  CHECK(beyond > most);
  REQUIRE_FALSE(fill("again", 1).ok());
  CHECK(counted == beyond);  // nothing more was written
  most = 1'000'000'000, counted = 0;
  REQUIRE(fill("two", rows).ok());
  CHECK(count(path) == rows);
  CHECK(counted > rows * 1000);
  CHECK(counted < rows * 3000);
}

TEST_CASE("bounded: pages that only COMMIT can write, because of a reader, are counted then") {
  TempDir dir;
  const std::string path = dir.file("a.db");
  make(path);
  std::optional<Connection> reader(std::in_place, path);
  std::int64_t counted = 0;
  int calls = -1;  // of the commit, once it has begun
  auto limited = bounds();
  limited.disk = [&](std::int64_t bytes) -> Result<> {
    counted += bytes;
    if (calls >= 0 && ++calls == 2) {
      CHECK(counted == 0);
      reader.reset();
    }
    return {};
  };
  auto t = Transaction::begin(path, record(""), limited);
  REQUIRE(t.ok());
  REQUIRE((*t)->exec("INSERT INTO t VALUES(randomblob(100000))", Value()).ok());
  reader->run("BEGIN; SELECT * FROM t");
  calls = 0;
  REQUIRE((*t)->commit(Value(), 1).ok());
  CHECK(calls >= 3);
  CHECK(counted > 100'000);
}

TEST_CASE("bounded: no function is given long texts") {
  const Bounded bounded;
  Transaction* const t = bounded.transaction.get();
  CHECK(t->query("SELECT length(zeroblob(1000000)) AS n", Value()).ok());
  CHECK(t->query("SELECT length(randomblob(2000000)) AS n", Value()).error().kind == ErrorKind::invalid);
  CHECK(t->query("SELECT json_patch('{}', '{}')", Value()).error().hint.find("json_patch") != std::string::npos);
  std::string columns = "SELECT abs(1)";
  for (int i = 0; i < 99; ++i) columns += ", abs(1)";
  CHECK(t->query(columns, Value()).ok());
  CHECK(t->query(columns + " WHERE abs(1)", Value()).error().hint.find("100 functions") != std::string::npos);
  CHECK(t->query(columns + ", 1", Value()).error().kind == ErrorKind::invalid);
}

TEST_CASE("bounded: names that stand for ever more text are refused before they are compiled") {
  const Bounded bounded;
  Transaction* const t = bounded.transaction.get();
  const auto refused = [&](const std::string& sql) {
    const Result<Value> r = t->query(sql, Value());
    return !r && r.error().message.find("under limits") != std::string::npos;
  };
  const auto chain = [](int length, const char* each, const char* last) {
    std::string sql = "WITH a0(x) AS (SELECT 1)";
    for (int i = 1; i <= length; ++i) sql += fmt::format(fmt::runtime(each), i, i - 1);
    return sql + fmt::format(fmt::runtime(last), length);
  };
  CHECK(refused(chain(40, ", a{0} AS (SELECT a.x FROM a{1} a JOIN a{1} b)", " SELECT x FROM a{}")));
  CHECK(refused(
      chain(40, ", A{0}(x) AS NOT MATERIALIZED /**/ (SELECT a.x FROM 'a{1}' a, [a{1}] b)", "SELECT * FROM a{}")));
  CHECK(refused("SELECT (" + chain(40, ", \"a{0}\" AS (SELECT x FROM main.a{1}, a{1}) -- )\n", "SELECT x FROM a{}") +
                ")"));
  CHECK(refused(chain(3000, ", a{0} AS (SELECT x FROM a{1})", " SELECT x FROM a{}")));
  CHECK_FALSE(refused(chain(100, ", a{0} AS (SELECT a{1}.x FROM a{1} WHERE a{1}.x > 0)", " SELECT x FROM a{}")));
  CHECK_FALSE(
      refused("WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT c.x+1 FROM c, c d LIMIT 9) SELECT x, c.x FROM c"));
  CHECK_FALSE(refused("SELECT 'it''s', count(*) OVER w FROM t WINDOW w AS (ORDER BY v)"));
  REQUIRE(t->exec("CREATE VIEW v0 AS SELECT * FROM t", Value()).ok());
  int views = 0;
  while (views < 40 &&
         t->exec(fmt::format("CREATE VIEW v{} AS SELECT a.v FROM v{} a, v{} b", views + 1, views, views), Value()))
    ++views;
  CHECK((views > 8 && views < 20));
  CHECK(t->query("SELECT * FROM v3", Value()).ok());
}

TEST_CASE("the linear-time functions give SQLite's results") {
  TempDir dir;
  const std::string path = dir.file("a.db");
  make(path);
  auto theirs = Transaction::begin(path, record(""));
  const auto answers = [&](auto& t) {
    std::map<std::string, std::string> out;
    const std::vector<const char*> values{"'aXbXc'", "'X'", "''",        "NULL", "12.5",        "x'00580058'", "x'58'",
                                          "'äöüä'",  "'ä'", "x'c3a4ff'", "'Xa'", "zeroblob(3)", "'\u00e4ßX'",  "x''"};
    for (const char* a : values) {
      for (const char* b : values) {
        const std::string two = fmt::format("{}, {}", a, b);
        const auto q = fmt::format(
            "SELECT instr({0}) a, hex(trim({0})) b, hex(ltrim({0})) c, hex(rtrim({0})) d, hex(replace({0}, '+ä')) e, "
            "typeof(replace({0}, 7)) f, typeof(trim({0})) g, hex(replace({0}, NULL)) h",
            two);
        out[two] = (*t)->query(q, Value()).value().to_json();
      }
    }
    return out;
  };
  const auto want = answers(theirs);
  theirs->reset();
  auto ours = Transaction::begin(path, record(""), bounds());
  for (const auto& [values, answer] : answers(ours)) {
    INFO(values);
    CHECK(answer == want.at(values));
  }
  const std::string longest =
      "SELECT instr(substr(a, 1, 500000), substr(a, 1, 250000) || 'b') + length(trim(a, a)) n "
      "FROM (SELECT replace(hex(zeroblob(250000)), '0', 'aa') a)";
  CHECK((*ours)->query(longest, Value()).value().to_json() == "[{\"n\":0}]");
}
