// A thin layer over SQLite: one connection, cached statements, Results instead of codes. Used by one thread at a time.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/core/base/result.hpp"

namespace rille::store {

// A value for a ? of a statement. std::monostate is NULL.
using SqlValue = std::variant<std::monostate, std::int64_t, std::string_view>;

class Row {
 public:
  explicit Row(sqlite3_stmt* statement) : statement_(statement) {}
  bool null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  std::string text(int column) const;

 private:
  sqlite3_stmt* statement_;
};

// Is called for each row that one connection changes, except in tables WITHOUT ROWID and for rows deleted by REPLACE.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void changed(std::string_view table, std::int64_t rowid) = 0;
  virtual void rolled_back() = 0;
};

class Db {
 public:
  // Opens or creates the database with WAL, synchronous=FULL, foreign keys and a busy time-out of 30 s. Error `io`:
  // names the path. Error `integrity`: the file is not a database.
  static Result<std::unique_ptr<Db>> open(const std::string& path, bool read_only);
  ~Db();
  Db(const Db&) = delete;
  Db& operator=(const Db&) = delete;

  Result<> run(std::string_view sql, std::initializer_list<SqlValue> values = {});
  Result<> query(std::string_view sql, std::initializer_list<SqlValue> values,
                 const std::function<void(const Row&)>& each);
  Result<> script(const char* sql);  // runs one or more statements without values
  Result<> check();                  // reads the whole file; error `integrity`: the file is damaged, and where
  // From now on commits do not checkpoint the write-ahead log; move_log() does, so that callers get their answers
  // earlier.
  void keep_log();
  std::int64_t log_pages() const { return log_pages_; }
  void move_log();
  // Truncates the write-ahead log if it is longer than `bytes` and no other process uses it, because the next process
  // would have to read all of it.
  void shrink_log(std::int64_t bytes);
  // Extends a nearly full write-ahead log with zeros, unless another process writes. A commit that does not change the
  // file's length saves half of an fsync's time.
  bool log_is_short() const;
  void lengthen_log();
  void watch(std::unique_ptr<Watcher> watcher);
  Watcher* watcher() const { return watcher_.get(); }
  std::int64_t changes() const { return sqlite3_changes64(db_); }
  std::int64_t last_row() const { return sqlite3_last_insert_rowid(db_); }

 private:
  explicit Db(std::string path) : path_(std::move(path)) {}
  Result<sqlite3_stmt*> prepare(std::string_view sql, std::initializer_list<SqlValue> values);
  Result<> start_log();
  Error error(std::string_view doing) const;

  std::string path_;
  sqlite3* db_ = nullptr;
  std::int64_t log_pages_ = 0;  // pages in the log after this connection's last commit; counted only after keep_log()
  bool log_known_ = false;      // true: log_pages_ counts the whole log
  std::int64_t log_bytes_ = 0;  // smallest length of the log file, as extended by lengthen_log()
  std::unique_ptr<Watcher> watcher_;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
  decltype(statements_)::iterator last_ = statements_.end();  // the statement used last; it is often also the next
};

}  // namespace rille::store
