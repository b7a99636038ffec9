// A disk that fails as disks do, under SQLite: a VFS that stands before the system's own and, while it lives, is the
// default. It counts the operations that change files and at a chosen one begins to fail, or cuts the power. After a
// cut, settle() leaves in each file what the disk may have kept: all that was synced, and of what was not any subset
// of its sectors of 512 bytes, in any order.
// One at a time, made before the first connection and destroyed after the last. Thread-safe.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace rille::test {

class FaultyDisk {
 public:
  enum class Fault { power, full, io_error };
  FaultyDisk();
  ~FaultyDisk();
  FaultyDisk(const FaultyDisk&) = delete;
  FaultyDisk& operator=(const FaultyDisk&) = delete;

  // From the n-th changing operation on (1: the next), so many of them fail; power never comes back before settle().
  void fail_at(int n, Fault fault, int count = 1);
  void heal();
  bool powered() const;
  int operations() const;  // that changed files, since the beginning
  int failed() const;      // operations that were made to fail
  // What the disk kept. No connection may be open. Heals it.
  void settle(std::uint32_t seed);

 private:
  friend struct FaultyFile;
  struct Change {
    std::int64_t offset = 0;
    std::string bytes;  // written there; or, when empty, the file was cut to `offset` bytes
  };
  struct File {
    std::optional<std::string> synced;  // as the disk surely has it; none: it may never have been
    std::vector<Change> since;
    bool opened_before = false;
  };
  int change(const std::string& path, Change what);  // SQLITE_OK: let it through; else the code to fail with
  int sync(const std::string& path);
  int strike();  // counts one operation; the code to fail with, or SQLITE_OK
  int remove(const std::string& path);
  void opened(const std::string& path);
  static void apply(std::string& image, const Change& change);
  std::string survivors(const File& file, std::mt19937& random) const;
  static int open(sqlite3_vfs* vfs, const char* path, sqlite3_file* file, int flags, int* out_flags);
  static int erase(sqlite3_vfs* vfs, const char* path, int sync_directory);

  sqlite3_vfs* below_;
  sqlite3_vfs vfs_;
  mutable std::mutex mutex_;  // guards what follows
  std::map<std::string, File> files_;
  int operations_ = 0, failed_ = 0, fail_at_ = 0, count_ = 0;
  Fault fault_ = Fault::io_error;
  bool powered_ = true;
};

}  // namespace rille::test
