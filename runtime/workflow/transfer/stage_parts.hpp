// Internal parts of staging: progress, copies in pieces, the cache. Private to runtime/workflow/transfer.
#pragma once

#include <optional>

#include "runtime/core/store/file.hpp"
#include "runtime/core/store/hash.hpp"
#include "runtime/workflow/transfer/stage.hpp"

namespace rille::transfer {

// Counts bytes and reports progress at intervals.
class Meter {
 public:
  Meter(const Clock& clock, std::function<void(const Progress&)> tell)
      : clock_(clock), tell_(std::move(tell)), started_ns_(clock.monotonic_ns()) {}
  void moved(std::int64_t bytes);
  void at(std::int64_t done_bytes) { now_.done_bytes = done_bytes; }  // sets the position: a resumed part, a restart
  void set_total(std::int64_t bytes) { now_.total_bytes = bytes; }
  void end();

 private:
  void say();
  const Clock& clock_;
  std::function<void(const Progress&)> tell_;
  Progress now_;
  std::int64_t started_ns_, told_ns_ = 0, moved_ = 0;
};

// Copies a file atomically, in pieces on the thread pool. With `sha256`, a copy with another digest is an integrity
// error and leaves the destination unchanged. `room` is asked before each piece is written.
Async<store::Fingerprint> copy_file(Loop& loop, std::string from, std::string to, std::string sha256, Meter& meter,
                                    CancelToken token, Room room);

// Creates the parent of the destination file. invalid: the destination is a directory.
Result<> prepare_place(const std::string& destination);

Error wrong_digest(const std::string& source, const std::string& found, const std::string& expected);

// Files by their SHA-256, and the known version per URL. With directory "" it stores and finds nothing.
class StageCache {
 public:
  struct Known {
    std::string version, sha256;
  };
  StageCache(std::string directory, std::int64_t bytes_max, Room room)
      : directory_(std::move(directory)), bytes_max_(bytes_max), room_(std::move(room)) {}
  std::string file_of(const std::string& sha256) const;     // the file's path, or "" if not cached
  std::optional<Known> find(const std::string& key) const;  // the cached version of a URL whose file exists
  // Copies `file` into the cache and notes the version. Any thread; the caller ignores a failure such as a full disk.
  Result<> put(const std::string& file, const std::string& key, const Known& known) const;
  void drop(const std::string& sha256) const;  // removes a damaged file

 private:
  void make_room(std::int64_t bytes) const;
  Result<> ask_room(std::int64_t bytes) const;
  std::string directory_;
  std::int64_t bytes_max_;
  Room room_;
};

// The web side of stage().
Async<Staged> stage_from_web(net::HttpClient& client, std::string url, std::string destination, StageOptions options,
                             CancelToken token);

}  // namespace rille::transfer
