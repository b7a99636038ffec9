// A thin layer over SQLite: one connection, cached statements, Results instead of codes. One thread at a time.
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

// A value to bind. std::monostate is NULL.
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

// Notified of one connection's changes, except in tables WITHOUT ROWID and for rows deleted by REPLACE.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void changed(std::string_view table, std::int64_t rowid) = 0;
  virtual void rolled_back() = 0;
};

class Db {
 public:
  // Opens or creates with WAL, synchronous=FULL, foreign keys and a 30 s busy time-out.
  // io: names the path; integrity: the file is not a database.
  static Result<std::unique_ptr<Db>> open(const std::string& path, bool read_only);
  ~Db();
  Db(const Db&) = delete;
  Db& operator=(const Db&) = delete;

  Result<> run(std::string_view sql, std::initializer_list<SqlValue> values = {});
  Result<> query(std::string_view sql, std::initializer_list<SqlValue> values,
                 const std::function<void(const Row&)>& each);
  Result<> script(const char* sql);  // several statements, no values
  Result<> check();                  // reads the whole file; integrity: it is damaged, and where
  // From here on commits do not checkpoint the log: move_log() does, so that callers get their answers earlier.
  void keep_log();
  std::int64_t log_pages() const { return log_pages_; }
  void move_log();
  // Truncates a log longer than `bytes`, unless another process uses it; the next process would have to read it all.
  void shrink_log(std::int64_t bytes);
  // Extends a log that is nearly full with zeros, unless another process writes: a commit within the file's length need
  // not change the length, which saves half of an fsync's time.
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
  std::int64_t log_pages_ = 0;  // after the last commit of this connection; with keep_log() only
  bool log_known_ = false;      // log_pages_ counts the whole log
  std::int64_t log_bytes_ = 0;  // least size of the log file, as extended here
  std::unique_ptr<Watcher> watcher_;
  std::map<std::string, sqlite3_stmt*, std::less<>> statements_;
  decltype(statements_)::iterator last_ = statements_.end();  // the statement used last, often used next
};

}  // namespace rille::store
