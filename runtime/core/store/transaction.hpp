// A transaction in a database of the user's that also stores a row about the transaction, so that an effect and its
// record are atomic: after a crash both exist, or neither. The row is in the table rille_steps of that database, keyed
// by a token; a later transaction with the same token finds the row and need not repeat the work. With an empty token
// no row is stored or looked for. One thread; the calls block. Destruction without commit rolls back. Statements that
// would end the transaction or reach another database (COMMIT, ROLLBACK, ATTACH) are refused, and all pragmas but those
// that read or change only this database or this transaction.
#pragma once

#include <sqlite3.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/base/result.hpp"
#include "runtime/core/base/value.hpp"
#include "runtime/core/loop/loop.hpp"

namespace rille::store {

class Transaction {
 public:
  struct Record {  // the content of the row in rille_steps
    // makes Record no aggregate, because of the GCC bug in loop/task.hpp
    Record(std::string t, std::string r, std::string s) : token(std::move(t)), run(std::move(r)), step(std::move(s)) {}
    std::string token, run, step;
  };
  // For the database of a script that is not trusted.
  struct Bounds {
    Bounds() {}  // makes Bounds no aggregate, as above
    // Bounds the work that SQLite does between two calls of Ask, which it makes only in loops: texts and blobs of at
    // most this many bytes, few functions in a statement, short statements; temporary tables in memory. 0: no bound.
    int text_bytes_max = 0;
    // The script may change the database's files otherwise. So no file is mapped into memory, where a script that
    // truncates it would end the process: a database in WAL mode is used without its -shm file, which needs all other
    // connections closed (error `state`).
    bool maps_nothing = false;
    // Called with the size of the pages that SQLite has written since the last call, maybe 0; an error ends the
    // statement or the commit.
    std::function<Result<>(std::int64_t bytes)> disk;
  };
  // Called every few steps of a statement with the bytes that it and its rows use; an error ends the statement. The
  // statement's own bytes are the growth of SQLite's memory, in the whole process, since the statement began.
  using Ask = std::function<Result<>(std::int64_t bytes)>;
  // Opens or creates the database file and begins the transaction. Errors: `io` names the path; `state`, retryable:
  // another writer is active; `integrity`: the file is not a database; `invalid`: the file is Rille's own journal, or
  // its table rille_steps was not made by a step.
  static Result<std::unique_ptr<Transaction>> begin(const std::string& path, Record record, Bounds bounds = {});
  // As begin, but tries for 30 s while another writer is active.
  static Async<std::shared_ptr<Transaction>> wait_and_begin(Loop& loop, std::string path, Record record,
                                                            Bounds bounds = {});
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // The result stored by an earlier transaction with this token; empty if there was none.
  const std::optional<Value>& found() const { return found_; }

  // Runs SQL. `values` is an array for ?, or an object for :name; without values there may be several statements.
  // Strings are bound as text if they are UTF-8, otherwise as blobs; whole numbers as integers; booleans as 1 and 0.
  // Returns the number of changed rows, including rows changed by triggers. Error `invalid`: names the statement.
  Result<std::int64_t> exec(const std::string& sql, const Value& values, const Ask& ask = {});
  // Returns the rows as objects; a NULL column is left out of its object.
  Result<Value> query(const std::string& sql, const Value& values, const Ask& ask = {});

  // Stores the row in rille_steps and commits: durable on return. On failure the transaction has no effect.
  Result<> commit(const Value& result, std::int64_t at_us);
  void roll_back();  // after this, every call fails with `state`

 private:
  Transaction(std::string path, Record record, Bounds bounds)
      : path_(std::move(path)), record_(std::move(record)), bounds_(std::move(bounds)) {}
  static int authorize(void* self, int action, const char*, const char*, const char*, const char*);
  static int progress(void* self);
  bool goes_on();
  Result<> count_pages();
  Result<> commit_pages();
  Result<> open();
  void bound();
  Result<> look();
  Result<> script(const char* sql);
  Result<> run(const std::string& sql, const Value& values, Value::Array* rows, const Ask& ask = {});
  Result<> check_size(const std::string& sql);
  Result<> step_all(sqlite3_stmt* statement, Value::Array* rows);
  Result<> bind(sqlite3_stmt* statement, const Value& values);
  Result<Value> row(sqlite3_stmt* statement);
  Error error(std::string_view doing);

  std::string path_;
  Record record_;
  Bounds bounds_;
  sqlite3* db_ = nullptr;
  std::int64_t page_bytes_ = 0;
  std::optional<Value> found_;
  bool guarded_ = false;  // true: a statement of the user runs, so authorize() checks it
  bool over_ = false;
  const Ask* ask_ = nullptr;  // for the running statement
  std::int64_t rows_bytes_ = 0, memory_before_ = 0;
  int own_looks_ = 0;
  std::optional<Error> ended_;  // why the statement was interrupted
  std::string refused_;         // the operation that authorize() has refused, and a hint
  int functions_ = 0;           // number of functions in the statement being compiled
};

}  // namespace rille::store
