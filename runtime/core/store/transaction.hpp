// A transaction in a database of the user's, which leaves a row that says what it was for. So an effect and the record
// that it happened are one: whoever comes after a crash finds both, or neither.
// The row stands in the table rille_steps of that database, under a token; a second transaction with the token finds it
// and need not be made. An empty token leaves and finds none.
// One thread; the calls block. Destroyed without commit, it leaves nothing. Statements that would end it, or reach
// beyond it (COMMIT, ROLLBACK, ATTACH), are refused.
#pragma once

#include <sqlite3.h>

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
  struct Record {                                        // what the row says
    Record(std::string t, std::string r, std::string s)  // not an aggregate: see loop/task.hpp
        : token(std::move(t)), run(std::move(r)), step(std::move(s)) {}
    std::string token, run, step;
  };
  // Opens or creates the file and begins. Errors: io names the path; state and retryable: another writer is at work,
  // come back later; integrity: it is no database; invalid: it is Rille's own journal.
  static Result<std::unique_ptr<Transaction>> begin(const std::string& path, Record record);
  // The same, coming back for half a minute.
  static Async<std::shared_ptr<Transaction>> wait_and_begin(Loop& loop, std::string path, Record record);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  // What an earlier transaction with this token was committed with.
  const std::optional<Value>& found() const { return found_; }

  // Strings are bound as text when they are UTF-8, else as blobs; whole numbers as integers; booleans as 1 and 0.
  // `values` is an array for ?, or an object for :name. Errors: invalid names the statement.
  // Several statements may follow one another when there are no values. Gives the number of rows they changed, those
  // of triggers included.
  Result<std::int64_t> exec(const std::string& sql, const Value& values);
  // Rows as objects; a null is a field that is not there.
  Result<Value> query(const std::string& sql, const Value& values);

  // Durable when it returns. Any failure means that nothing of it has happened.
  Result<> commit(const Value& result, std::int64_t at_us);
  void roll_back();  // whoever still holds it can do nothing more with it

 private:
  Transaction(std::string path, Record record) : path_(std::move(path)), record_(std::move(record)) {}
  static int authorize(void* self, int action, const char*, const char*, const char*, const char*);
  Result<> open();
  Result<> look();
  Result<> script(const char* sql);
  Result<> run(const std::string& sql, const Value& values, Value::Array* rows);
  Result<> bind(sqlite3_stmt* statement, const Value& values);
  Result<Value> row(sqlite3_stmt* statement);
  Error error(std::string_view doing) const;

  std::string path_;
  Record record_;
  sqlite3* db_ = nullptr;
  std::optional<Value> found_;
  bool guarded_ = false;  // the user's statements run
  bool over_ = false;
};

}  // namespace rille::store
