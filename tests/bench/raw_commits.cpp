// The floor of a durable step: SQLite itself (WAL, synchronous=FULL) appending rows of the same table and the same
// bytes as Rille's entries, one to a commit or many. Prints nanoseconds per row.
// usage: raw_commits FILE ROWS ROWS_PER_COMMIT
#include <sqlite3.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  int rows = std::atoi(argv[2]), per = std::atoi(argv[3]);
  sqlite3* db = nullptr;
  if (sqlite3_open(argv[1], &db) != SQLITE_OK) return 1;
  sqlite3_exec(db,
               "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
               "CREATE TABLE entries(id INTEGER PRIMARY KEY, fiber TEXT NOT NULL, pos INTEGER NOT NULL,"
               "kind TEXT NOT NULL, name TEXT NOT NULL, occurrence INTEGER NOT NULL, args_sha256 TEXT NOT NULL,"
               "attempt INTEGER NOT NULL, source TEXT NOT NULL, started_us INTEGER NOT NULL,"
               "ended_us INTEGER NOT NULL, value TEXT, error TEXT) "
               "STRICT;",
               nullptr, nullptr, nullptr);
  sqlite3_stmt* insert = nullptr;
  sqlite3_prepare_v2(db,
                     "INSERT INTO entries VALUES(?,?,?,'step','s',?,'74234e98afe7498fb5daf1f36ac2d78a',1,"
                     "'steps.lua:9',?,?,?,NULL)",
                     -1, &insert, nullptr);
  auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < rows;) {
    sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
    for (int k = 0; k < per && i < rows; ++k, ++i) {
      std::string fiber = per == 1 ? "main" : "main/m[" + std::to_string(k + 1) + "]#1";
      std::string value = std::to_string(i / per);
      sqlite3_bind_int64(insert, 1, (std::int64_t{1} << 32) + i);
      sqlite3_bind_text(insert, 2, fiber.data(), static_cast<int>(fiber.size()), SQLITE_STATIC);
      sqlite3_bind_int(insert, 3, i / per);
      sqlite3_bind_int(insert, 4, i / per + 1);
      sqlite3_bind_int64(insert, 5, 1'795'000'000'000'000 + i);
      sqlite3_bind_int64(insert, 6, 1'795'000'000'000'100 + i);
      sqlite3_bind_text(insert, 7, value.data(), static_cast<int>(value.size()), SQLITE_STATIC);
      if (sqlite3_step(insert) != SQLITE_DONE) return 1;
      sqlite3_reset(insert);
    }
    if (sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr) != SQLITE_OK) return 1;
  }
  sqlite3_finalize(insert);
  sqlite3_close(db);  // with its checkpoint, as a run's end has one
  double ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - began).count();
  std::printf("%.1f\n", ns / rows);
  return 0;
}
