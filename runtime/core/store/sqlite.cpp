#include "runtime/core/store/sqlite.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>

#include "runtime/core/store/journal_failure.hpp"
#include "runtime/core/store/sqlite_memory.hpp"

namespace rille::store {

namespace {
constexpr int busy_ms = 30'000;
constexpr std::int64_t page_bytes = 4096, frame_bytes = page_bytes + 24, log_bytes_ahead = 2 << 20;
constexpr const char* hint_of_damage =
    "restore the journal from a backup, then run `rille gc`: it finds rented machines by their tags";
}  // namespace

namespace {

std::atomic<bool> failed{false};

bool is_fault(int primary) {  // of the disk or the file, not of a statement
  return primary != SQLITE_ERROR && primary != SQLITE_CONSTRAINT && primary != SQLITE_INTERRUPT &&
         primary != SQLITE_MISUSE && primary != SQLITE_TOOBIG && primary != SQLITE_RANGE;
}

}  // namespace

void note_journal_failure() { failed = true; }
bool journal_has_failed() { return failed; }

void count_no_memory() { sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0); }

std::string Row::text(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  return bytes ? std::string(bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))) : std::string();
}

Error Db::error(std::string_view doing) const {
  int code = sqlite3_extended_errcode(db_);
  int primary = code & 0xff;
  std::string_view said = sqlite3_errmsg(db_);
  // For an invalid format number in the file header SQLite reports only SQLITE_ERROR with this message.
  bool damaged = primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB ||
                 (primary == SQLITE_ERROR && said == "unsupported file format");
  Error e =
      make_error(damaged ? ErrorKind::integrity : ErrorKind::io, fmt::format("cannot {} '{}': {}", doing, path_, said));
  e.operation = "journal";
  if (damaged || is_fault(primary)) note_journal_failure();
  e.code = fmt::format("sqlite {}", code);
  if (primary == SQLITE_FULL) e.hint = "free some space on that disk, then resume; nothing that was committed is lost";
  if (primary == SQLITE_READONLY || primary == SQLITE_CANTOPEN || primary == SQLITE_PERM)
    e.hint = "check the owner and mode of that file and of its folder";
  if (primary == SQLITE_BUSY)
    e.retryable = true, e.hint = "another process has held the journal for 30 s: end that process, or try again later";
  if (damaged) e.hint = hint_of_damage;
  return e;
}

Result<> Db::check() {
  std::string said;
  RILLE_CHECK(query("PRAGMA quick_check(1)", {}, [&](const Row& row) { said = row.text(0); }));
  if (said == "ok") return {};
  return make_error(ErrorKind::integrity, fmt::format("'{}' is damaged: {}", path_, said), hint_of_damage)
      .with_operation("journal");
}

Result<std::unique_ptr<Db>> Db::open(const std::string& path, bool read_only) {
  std::unique_ptr<Db> db(new Db(path));
  int flags = (read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(path.c_str(), &db->db_, flags, nullptr) != SQLITE_OK) return db->error("open");
  sqlite3_extended_result_codes(db->db_, 1);
  sqlite3_busy_timeout(db->db_, busy_ms);
  if (!read_only) RILLE_CHECK(db->start_log());
  // Closing the last connection keeps the log: removing it costs two fsyncs, and the next start would create it again.
  // shrink_log shortens a long log.
  sqlite3_db_config(db->db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  RILLE_CHECK(db->script("PRAGMA foreign_keys=ON; PRAGMA journal_size_limit=67108864;"));
  return db;
}

// Retries, because two processes that create the journal at once both set its mode. SQLite then refuses one of them
// immediately, as it sees a deadlock and does not call the busy handler.
Result<> Db::start_log() {
  auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(busy_ms);
  for (;;) {
    Result<> r = script(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA fullfsync=ON; "
        "PRAGMA secure_delete=OFF;");  // the journal holds no secrets, and overwriting deleted data takes time
    bool busy = (sqlite3_errcode(db_) & 0xff) == SQLITE_BUSY;
    if (r || !busy || std::chrono::steady_clock::now() > until) return r;
    sqlite3_sleep(5);
  }
}

Db::~Db() {
  for (auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close_v2(db_);
}

Result<sqlite3_stmt*> Db::prepare(std::string_view sql, std::initializer_list<SqlValue> values) {
  auto it = last_ != statements_.end() && last_->first == sql ? last_ : statements_.find(sql);
  if (it == statements_.end()) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v3(db_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT, &statement,
                           nullptr) != SQLITE_OK)
      return error("use");
    it = statements_.emplace(std::string(sql), statement).first;
  }
  last_ = it;
  sqlite3_stmt* statement = it->second;
  int i = 0;
  for (const SqlValue& v : values) {
    ++i;
    if (const auto* n = std::get_if<std::int64_t>(&v)) sqlite3_bind_int64(statement, i, *n);
    else if (const auto* s = std::get_if<std::string_view>(&v))
      sqlite3_bind_text64(statement, i, s->data() ? s->data() : "", s->size(), SQLITE_STATIC, SQLITE_UTF8);
    else sqlite3_bind_null(statement, i);
  }
  return statement;
}

Result<> Db::query(std::string_view sql, std::initializer_list<SqlValue> values,
                   const std::function<void(const Row&)>& each) {
  RILLE_TRY(sqlite3_stmt * statement, prepare(sql, values));
  int rc;
  while ((rc = sqlite3_step(statement)) == SQLITE_ROW)
    if (each) each(Row(statement));
  Result<> out;
  if (rc != SQLITE_DONE) out = error("use");
  sqlite3_reset(statement);
  return out;
}

Result<> Db::run(std::string_view sql, std::initializer_list<SqlValue> values) { return query(sql, values, nullptr); }

void Db::watch(std::unique_ptr<Watcher> watcher) {
  watcher_ = std::move(watcher);
  const auto changed = [](void* self, int, const char*, const char* table, sqlite3_int64 rowid) {
    static_cast<Watcher*>(self)->changed(table, rowid);
  };
  sqlite3_update_hook(db_, changed, watcher_.get());
  sqlite3_rollback_hook(
      db_, [](void* self) { static_cast<Watcher*>(self)->rolled_back(); }, watcher_.get());
}

void Db::keep_log() {
  const auto note = [](void* self, sqlite3*, const char*, int pages) {
    static_cast<Db*>(self)->log_pages_ = pages;
    static_cast<Db*>(self)->log_known_ = true;
    return SQLITE_OK;
  };
  sqlite3_wal_hook(db_, note, this);
}

void Db::move_log() {
  log_pages_ = 0;
  (void)sqlite3_wal_checkpoint_v2(db_, nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
}

// If this connection wrote nothing to the log, only the length of the log file is known, not how much of it is used.
void Db::shrink_log(std::int64_t bytes) {
  struct stat log {};
  if (log_known_ && log_pages_ * page_bytes <= bytes) return;
  const std::int64_t most = log_known_ ? bytes : bytes + log_bytes_ahead;
  if (stat((path_ + "-wal").c_str(), &log) != 0 || log.st_size <= most) return;
  sqlite3_busy_timeout(db_, 0);
  (void)sqlite3_wal_checkpoint_v2(db_, nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
}

bool Db::log_is_short() const { return log_pages_ * frame_bytes + log_bytes_ahead / 2 > log_bytes_; }

void Db::lengthen_log() {
  const std::int64_t wanted = log_pages_ * frame_bytes + log_bytes_ahead;
  log_bytes_ = wanted;  // set even if extending fails, so that it is not tried again and again
  sqlite3_busy_timeout(db_, 0);
  const bool alone = sqlite3_exec(db_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK;
  sqlite3_busy_timeout(db_, busy_ms);
  if (!alone) return;
  // The open write transaction keeps other processes from extending the log.
  sqlite3_file* log = nullptr;
  sqlite3_int64 size = 0;
  bool well = sqlite3_file_control(db_, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK && log &&
              log->pMethods && log->pMethods->xFileSize(log, &size) == SQLITE_OK;
  if (well && size < wanted) {
    const std::vector<char> zeros(64 << 10);
    for (std::int64_t at = size; well && at < wanted; at += static_cast<std::int64_t>(zeros.size()))
      well = log->pMethods->xWrite(log, zeros.data(), static_cast<int>(zeros.size()), at) == SQLITE_OK;
    if (well) (void)log->pMethods->xSync(log, SQLITE_SYNC_DATAONLY);
    else (void)log->pMethods->xTruncate(log, size);  // give the disk space back after a failed extension
  }
  (void)sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr);
}

Result<> Db::script(const char* sql) {
  if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return error("use");
  return {};
}

}  // namespace rille::store
