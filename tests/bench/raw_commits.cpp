// The floor of a durable step: one FULL commit of a row of about the same size by SQLite itself, one after another, or
// many rows to a commit. Prints nanoseconds per row. usage: raw_commits FILE ROWS ROWS_PER_COMMIT
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
               "CREATE TABLE t(run TEXT, fiber TEXT, pos INTEGER, value TEXT, PRIMARY KEY(run, fiber, pos)) "
               "WITHOUT ROWID;",
               nullptr, nullptr, nullptr);
  sqlite3_stmt* insert = nullptr;
  sqlite3_prepare_v2(db, "INSERT INTO t VALUES('20261121-020304-kqwmzt','main',?,?)", -1, &insert, nullptr);
  std::string value(200, 'x');
  auto began = std::chrono::steady_clock::now();
  for (int i = 0; i < rows;) {
    sqlite3_exec(db, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr);
    for (int k = 0; k < per && i < rows; ++k, ++i) {
      sqlite3_bind_int(insert, 1, i);
      sqlite3_bind_text(insert, 2, value.data(), static_cast<int>(value.size()), SQLITE_STATIC);
      sqlite3_step(insert);
      sqlite3_reset(insert);
    }
    sqlite3_exec(db, "COMMIT", nullptr, nullptr, nullptr);
  }
  double ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - began).count();
  sqlite3_finalize(insert);
  sqlite3_close(db);
  std::printf("%.1f\n", ns / rows);
  return 0;
}
