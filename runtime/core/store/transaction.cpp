#include "runtime/core/store/transaction.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "runtime/core/base/base64.hpp"
#include "runtime/core/store/sql_functions.hpp"
#include "runtime/core/store/sql_size.hpp"

namespace rille::store {

namespace {

constexpr std::int64_t exact_max = std::int64_t{1} << 53;  // largest integer that a Lua number holds exactly
constexpr std::int64_t look_again_ms = 10, wait_ms_max = 30'000;
constexpr int commit_wait_ms = 5'000;  // how long COMMIT waits for readers of a database without WAL

constexpr const char* own_business =
    "do not begin, commit or roll back yourself, nor attach databases: the step does that";
constexpr int operations_per_look = 100;
constexpr int own_looks_max = 100'000;  // limit for statements about rille_steps, which need few operations
constexpr int functions_max = 100;
constexpr double expanded_bytes_max = 1 << 20;
constexpr std::array quadratic{"json_patch", "unhex"};

// Pragmas that read or change only this database or this transaction. Others change settings of the connection that the
// step has made, or of the whole process (hard_heap_limit).
constexpr std::array pragmas{
    "application_id", "case_sensitive_like", "collation_list",   "data_version", "defer_foreign_keys",
    "encoding",       "foreign_key_check",   "foreign_key_list", "foreign_keys", "freelist_count",
    "function_list",  "index_info",          "index_list",       "index_xinfo",  "integrity_check",
    "page_count",     "page_size",           "pragma_list",      "quick_check",  "recursive_triggers",
    "table_info",     "table_list",          "table_xinfo",      "user_version"};

struct Statement {
  sqlite3_stmt* s = nullptr;
  Statement() = default;
  ~Statement() { sqlite3_finalize(s); }
  Statement(const Statement&) = delete;
};

}  // namespace

Error Transaction::error(std::string_view doing) {
  if (ended_) return *std::exchange(ended_, {});
  int code = sqlite3_extended_errcode(db_), primary = code & 0xff;
  bool users = primary == SQLITE_ERROR || primary == SQLITE_CONSTRAINT || primary == SQLITE_MISMATCH ||
               primary == SQLITE_RANGE || primary == SQLITE_AUTH || primary == SQLITE_TOOBIG;
  bool damaged = primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB;
  bool busy = primary == SQLITE_BUSY || primary == SQLITE_LOCKED;
  Error e = make_error(damaged ? ErrorKind::integrity
                       : busy  ? ErrorKind::state
                       : users ? ErrorKind::invalid
                               : ErrorKind::io,
                       fmt::format("cannot {} in '{}': {}", doing, path_, sqlite3_errmsg(db_)));
  e.code = fmt::format("sqlite {}", code);
  e.retryable = busy;
  if (busy) e.hint = "another process kept the database locked: try again when that process is done";
  if (primary == SQLITE_FULL) e.hint = "free some space on that disk; this step had no effect";
  if (!refused_.empty()) e.hint = std::exchange(refused_, {});
  if (primary == SQLITE_TOOBIG)
    e.hint = fmt::format("a value may have {} bytes, a statement {}", sqlite3_limit(db_, SQLITE_LIMIT_LENGTH, -1),
                         sqlite3_limit(db_, SQLITE_LIMIT_SQL_LENGTH, -1));
  return e;
}

int Transaction::authorize(void* self, int action, const char* first, const char* second, const char*, const char*) {
  auto& t = *static_cast<Transaction*>(self);
  if (!t.guarded_) return SQLITE_OK;
  if (action == SQLITE_TRANSACTION || action == SQLITE_ATTACH || action == SQLITE_DETACH) {
    t.refused_ = own_business;
    return SQLITE_DENY;
  }
  const auto same = [](const char* a) { return [a](const char* b) { return sqlite3_stricmp(a, b) == 0; }; };
  if (action == SQLITE_PRAGMA && std::none_of(pragmas.begin(), pragmas.end(), same(first))) {
    t.refused_ = fmt::format("PRAGMA {} is not possible in a step; these are: {}", first, fmt::join(pragmas, ", "));
    return SQLITE_DENY;
  }
  if (action != SQLITE_FUNCTION || !t.bounds_.text_bytes_max) return SQLITE_OK;
  if (++t.functions_ > functions_max)
    t.refused_ = fmt::format("under limits a statement may call {} functions: split it", functions_max);
  else if (std::any_of(quadratic.begin(), quadratic.end(), same(second)))
    t.refused_ = fmt::format("under limits the function {} is not possible, as nothing can interrupt it", second);
  else return SQLITE_OK;
  return SQLITE_DENY;
}

int Transaction::progress(void* self) { return static_cast<Transaction*>(self)->goes_on() ? 0 : 1; }

// The limit own_looks_max also ends views and triggers that a script has made for rille_steps; they must not block the
// loop's thread.
bool Transaction::goes_on() {
  Result<> may;
  if (ask_ && *ask_) may = (*ask_)(rows_bytes_ + std::max<std::int64_t>(0, sqlite3_memory_used() - memory_before_));
  else if (!guarded_ && ++own_looks_ > own_looks_max)
    may = make_error(ErrorKind::invalid, fmt::format("'{}': a view or trigger of rille_steps does not end", path_),
                     "rille_steps is the table in which steps keep their results: drop what else uses this name");
  if (may) may = count_pages();
  if (may) return true;
  ended_ = std::move(may).error();
  return false;
}

Result<> Transaction::count_pages() {
  int pages = 0, most = 0;
  if (!bounds_.disk || sqlite3_db_status(db_, SQLITE_DBSTATUS_CACHE_WRITE, &pages, &most, 1) != SQLITE_OK) return {};
  return bounds_.disk(pages * page_bytes_);
}

Result<std::unique_ptr<Transaction>> Transaction::begin(const std::string& path, Record record, Bounds bounds) {
  std::unique_ptr<Transaction> t(new Transaction(path, std::move(record), std::move(bounds)));
  RILLE_CHECK(t->open());
  RILLE_CHECK(t->look());
  t->guarded_ = true;
  return t;
}

void Transaction::bound() {
  sqlite3_limit(db_, SQLITE_LIMIT_LENGTH, bounds_.text_bytes_max);
  sqlite3_limit(db_, SQLITE_LIMIT_SQL_LENGTH, 128 << 10);
  sqlite3_limit(db_, SQLITE_LIMIT_COLUMN, 100);
  sqlite3_limit(db_, SQLITE_LIMIT_EXPR_DEPTH, 100);
  sqlite3_limit(db_, SQLITE_LIMIT_FUNCTION_ARG, 32);
  sqlite3_limit(db_, SQLITE_LIMIT_COMPOUND_SELECT, 100);
  sqlite3_limit(db_, SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50);
  add_linear_functions(db_);
}

Result<> Transaction::open() {
  int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(path_.c_str(), &db_, flags, nullptr) != SQLITE_OK) return error("begin");
  sqlite3_extended_result_codes(db_, 1);
  sqlite3_busy_timeout(db_, 0);
  sqlite3_set_authorizer(db_, authorize, this);
  sqlite3_progress_handler(db_, operations_per_look, progress, this);
  sqlite3_db_config(db_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  if (bounds_.text_bytes_max) {
    bound();
    RILLE_CHECK(script("PRAGMA temp_store=MEMORY"));
  }
  // With this locking mode SQLite keeps the index of the log in its own memory (sqlite.org/wal.html, "Use of WAL
  // Without Shared-Memory"), if the mode is set before it reads the database.
  if (bounds_.maps_nothing) RILLE_CHECK(script("PRAGMA mmap_size=0; PRAGMA locking_mode=EXCLUSIVE"));
  // Closing keeps the log of a WAL database: emptying it at each step would cost two fsyncs.
  sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  RILLE_CHECK(script("PRAGMA synchronous=FULL; PRAGMA fullfsync=ON; PRAGMA foreign_keys=ON; BEGIN IMMEDIATE"));
  sqlite3_busy_timeout(db_, commit_wait_ms);
  Value::Array rows;
  RILLE_CHECK(run("PRAGMA page_size", Value(), &rows));
  page_bytes_ = rows.at(0).integer("page_size");
  return {};
}

// Refuses a journal of Rille, and reads the row of an earlier transaction with this token.
Result<> Transaction::look() {
  Value::Array rows;
  RILLE_CHECK(run("SELECT count(*) AS n FROM sqlite_schema WHERE type='table' AND name IN ('begun','leases','entries')",
                  Value(), &rows));
  if (rows.at(0).integer("n") == 3)
    return make_error(ErrorKind::invalid,
                      fmt::format("'{}' is a journal of Rille, which a step must not change", path_),
                      "name a database of your own; it may be a new file");
  if (record_.token.empty()) return {};
  RILLE_CHECK(
      script("CREATE TABLE IF NOT EXISTS rille_steps (token TEXT PRIMARY KEY, run TEXT NOT NULL, "
             "step TEXT NOT NULL, result TEXT NOT NULL, at_us INTEGER NOT NULL)"));
  rows.clear();
  RILLE_CHECK(run("SELECT result FROM rille_steps WHERE token=?", Value(Value::Array{record_.token}), &rows));
  if (rows.empty()) return {};
  RILLE_TRY(found_, Value::from_json(rows[0].text("result")));
  return {};
}

Async<std::shared_ptr<Transaction>> Transaction::wait_and_begin(Loop& loop, std::string path, Record record,
                                                                Bounds bounds) {
  CancelToken never;
  for (std::int64_t waited_ms = 0;; waited_ms += look_again_ms) {
    Result<std::unique_ptr<Transaction>> begun = begin(path, record, bounds);
    if (begun) co_return std::shared_ptr<Transaction>(std::move(*begun));
    if (begun.error().kind != ErrorKind::state || waited_ms >= wait_ms_max) co_return begun.error();
    RILLE_CO_CHECK(co_await sleep_for(loop, look_again_ms, never));
  }
}

Transaction::~Transaction() { roll_back(); }

void Transaction::roll_back() {
  over_ = true;
  sqlite3_close_v2(std::exchange(db_, nullptr));  // closing rolls back an open transaction
}

Result<> Transaction::script(const char* sql) {
  if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return error("begin a transaction");
  return {};
}

Result<> Transaction::bind(sqlite3_stmt* statement, const Value& values) {
  auto one = [&](int i, const Value& v) -> Result<> {
    const std::string* s = v.as_string();
    const double* n = v.as_number();
    int rc = SQLITE_OK;
    if (v.is_null()) rc = sqlite3_bind_null(statement, i);
    else if (const bool* b = v.as_bool()) rc = sqlite3_bind_int(statement, i, *b);
    else if (n && *n == std::floor(*n) && std::abs(*n) <= static_cast<double>(exact_max))
      rc = sqlite3_bind_int64(statement, i, static_cast<std::int64_t>(*n));
    else if (n) rc = sqlite3_bind_double(statement, i, *n);
    else if (s && is_utf8(*s) && s->find('\0') == std::string::npos)
      rc = sqlite3_bind_text64(statement, i, s->data(), s->size(), SQLITE_TRANSIENT, SQLITE_UTF8);
    else if (s) rc = sqlite3_bind_blob64(statement, i, s->data(), s->size(), SQLITE_TRANSIENT);
    else
      return make_error(ErrorKind::invalid,
                        fmt::format("value {} of the statement is a table, which a database cannot hold", i),
                        "pass nil, booleans, numbers and strings; turn a table into JSON text first");
    if (rc != SQLITE_OK) return error("use a value");
    return {};
  };
  int wanted = sqlite3_bind_parameter_count(statement);
  const Value::Object* named = values.as_object();
  const Value::Array* list = values.as_array();
  int given = list ? static_cast<int>(list->size()) : named ? static_cast<int>(named->size()) : 0;
  if (!named && given != wanted)
    return make_error(ErrorKind::invalid, fmt::format("the statement has {} placeholders, but {} values were given: {}",
                                                      wanted, given, sqlite3_sql(statement)));
  if (list)
    for (int i = 0; i < wanted; ++i) RILLE_CHECK(one(i + 1, (*list)[static_cast<std::size_t>(i)]));
  if (!named) return {};
  int used = 0;
  for (int i = 1; i <= wanted; ++i) {
    const char* name = sqlite3_bind_parameter_name(statement, i);
    auto it = name ? named->find(std::string_view(name + 1)) : named->end();
    if (it == named->end()) continue;  // the script passed nil for this name: bind NULL
    ++used;
    RILLE_CHECK(one(i, it->second));
  }
  if (used == given) return {};
  return make_error(ErrorKind::invalid,
                    fmt::format("the statement uses only {} of the {} values: {}", used, given, sqlite3_sql(statement)),
                    "placeholders for named values are written :name");
}

Result<Value> Transaction::row(sqlite3_stmt* statement) {
  Value out{Value::Object()};
  for (int c = 0, n = sqlite3_column_count(statement); c < n; ++c) {
    std::string name = sqlite3_column_name(statement, c);
    switch (sqlite3_column_type(statement, c)) {
      case SQLITE_NULL: break;
      case SQLITE_FLOAT: out.set(name, sqlite3_column_double(statement, c)); break;
      case SQLITE_INTEGER: {
        std::int64_t v = sqlite3_column_int64(statement, c);
        if (v > exact_max || v < -exact_max)
          return make_error(ErrorKind::invalid,
                            fmt::format("{} = {} is beyond the exact integers of a Lua number (2^53)", name, v),
                            "select it as text: CAST(... AS TEXT)");
        out.set(name, v);
        break;
      }
      default: {
        const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement, c));
        auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement, c));
        out.set(name, bytes ? std::string(bytes, size) : std::string());
      }
    }
  }
  return out;
}

// The approximate memory of a row: its tree of names and values.
static std::int64_t row_memory_bytes(const Value& row) {
  constexpr std::int64_t row_bytes = 64, column_bytes = 128;
  std::int64_t bytes = row_bytes;
  for (const auto& [name, value] : *row.as_object()) {
    const std::string* text = value.as_string();
    bytes += column_bytes + static_cast<std::int64_t>(name.size() + (text ? text->size() : 0));
  }
  return bytes;
}

Result<> Transaction::step_all(sqlite3_stmt* statement, Value::Array* rows) {
  constexpr std::int64_t ask_after_bytes = 1 << 20;
  int rc = SQLITE_OK;
  for (std::int64_t asked = 0; (rc = sqlite3_step(statement)) == SQLITE_ROW;) {
    if (!rows) continue;
    RILLE_TRY(Value found, row(statement));
    rows_bytes_ += row_memory_bytes(found);
    rows->push_back(std::move(found));
    if (rows_bytes_ - asked < ask_after_bytes) continue;
    asked = rows_bytes_;
    if (!goes_on()) return error("run the statement");
  }
  if (rc != SQLITE_DONE) return error("run the statement");
  return {};
}

// Refuses large statements, because SQLite cannot be interrupted while it compiles.
Result<> Transaction::check_size(const std::string& sql) {
  std::vector<std::pair<std::string, std::string>> schema;
  Statement each;
  const char* read =
      "SELECT iif(type='view', name, ''), sql FROM sqlite_schema WHERE type IN ('view','trigger') UNION ALL "
      "SELECT iif(type='view', name, ''), sql FROM sqlite_temp_schema WHERE type IN ('view','trigger')";
  int rc = sqlite3_prepare_v3(db_, read, -1, 0, &each.s, nullptr);
  while (rc == SQLITE_OK && (rc = sqlite3_step(each.s)) == SQLITE_ROW) {
    const auto text = [&](int column) {
      const auto* t = reinterpret_cast<const char*>(sqlite3_column_text(each.s, column));
      return std::string(t ? t : "");
    };
    schema.emplace_back(text(0), text(1));
    rc = SQLITE_OK;
  }
  if (rc != SQLITE_DONE) return error("run the statement");
  if (const double bytes = expanded_bytes(sql, schema); bytes > expanded_bytes_max)
    return make_error(ErrorKind::invalid,
                      fmt::format("with the views, triggers and tables of WITH that it uses, a statement has {:.3g} "
                                  "bytes; under limits {} are possible: {}",
                                  bytes, expanded_bytes_max, sql.substr(0, 200)),
                      "keep intermediate results in a table");
  return {};
}

Result<> Transaction::run(const std::string& sql, const Value& values, Value::Array* rows, const Ask& ask) {
  struct Asking {
    Transaction& t;
    ~Asking() { t.ask_ = nullptr; }
  } asking{*this};
  ask_ = &ask, rows_bytes_ = 0, memory_before_ = sqlite3_memory_used();
  bool any_values = (values.as_array() && !values.as_array()->empty()) || values.as_object();
  const char* rest = sql.c_str();
  const char* end = rest + sql.size();
  int statements = 0;
  if (bounds_.text_bytes_max && guarded_) RILLE_CHECK(check_size(sql));
  while (rest < end) {
    // Stop if a failed statement has rolled back: later statements would each commit alone.
    if (over_ || sqlite3_get_autocommit(db_))
      return make_error(
          ErrorKind::state, fmt::format("the transaction of step '{}' is over", record_.step),
          over_ ? "use `ctx.db` only inside the body of its step" : "it was rolled back by an earlier error");
    Statement statement;
    const char* tail = end;
    functions_ = 0;
    if (sqlite3_prepare_v3(db_, rest, static_cast<int>(end - rest), 0, &statement.s, &tail) != SQLITE_OK)
      return error("run the statement");
    rest = tail;
    if (!statement.s) continue;  // the rest was a comment or white space
    if (++statements > 1 && any_values)
      return make_error(ErrorKind::invalid, fmt::format("values were given for more than one statement: {}", sql),
                        "run one statement at a time");
    RILLE_CHECK(bind(statement.s, values));
    RILLE_CHECK(step_all(statement.s, rows));
  }
  if (statements > 0) return {};
  return make_error(ErrorKind::invalid, fmt::format("'{}' is not a statement", sql),
                    "pass one SQL statement, such as SELECT or INSERT");
}

Result<std::int64_t> Transaction::exec(const std::string& sql, const Value& values, const Ask& ask) {
  std::int64_t before = db_ ? sqlite3_total_changes64(db_) : 0;
  RILLE_CHECK(run(sql, values, nullptr, ask));
  return sqlite3_total_changes64(db_) - before;
}

Result<Value> Transaction::query(const std::string& sql, const Value& values, const Ask& ask) {
  Value::Array rows;
  RILLE_CHECK(run(sql, values, &rows, ask));
  return Value(std::move(rows));
}

Result<> Transaction::commit(const Value& result, std::int64_t at_us) {
  guarded_ = false;
  Result<> done;
  if (!record_.token.empty()) {
    Value::Array row{record_.token, record_.run, record_.step, result.to_json(), at_us};
    done =
        run("INSERT INTO rille_steps(token,run,step,result,at_us) VALUES(?,?,?,?,?)", Value(std::move(row)), nullptr);
  }
  if (done) done = commit_pages();
  roll_back();  // only closes the connection if COMMIT succeeded
  return done;
}

// Writes the pages before COMMIT, so that the limit of `disk` can still refuse it.
Result<> Transaction::commit_pages() {
  if (bounds_.disk) {
    RILLE_CHECK(count_pages());  // writes nothing more if earlier transactions have exceeded the limit
    sqlite3_busy_timeout(db_, 0);
    (void)sqlite3_db_cacheflush(db_);  // what a reader's lock keeps back, COMMIT waits for and writes
    sqlite3_busy_timeout(db_, commit_wait_ms);
    RILLE_CHECK(count_pages());
  }
  const Result<> done = run("COMMIT", Value(), nullptr);
  if (bounds_.disk) (void)count_pages();
  return done;
}

}  // namespace rille::store
