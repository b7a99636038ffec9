// Inside of staging: progress, copies in pieces, the cache. Not for use outside runtime/data.
#pragma once

#include <optional>

#include "runtime/core/store/file.hpp"
#include "runtime/core/store/hash.hpp"
#include "runtime/workflow/transfer/stage.hpp"

namespace rille::transfer {

// Counts bytes and tells the caller now and then.
class Meter {
 public:
  Meter(const Clock& clock, std::function<void(const Progress&)> tell)
      : clock_(clock), tell_(std::move(tell)), started_ns_(clock.monotonic_ns()) {}
  void moved(std::int64_t bytes);
  void at(std::int64_t done_bytes) { now_.done_bytes = done_bytes; }  // jumps: a resumed part, a restart
  void set_total(std::int64_t bytes) { now_.total_bytes = bytes; }
  void end();

 private:
  void say();
  const Clock& clock_;
  std::function<void(const Progress&)> tell_;
  Progress now_;
  std::int64_t started_ns_, told_ns_ = 0, moved_ = 0;
};

// Copies one file atomically, in pieces on the thread pool. With `sha256` the copy must have that digest:
// else integrity, and the destination is as before.
Async<store::Fingerprint> copy_file(Loop& loop, std::string from, std::string to, std::string sha256, Meter& meter,
                                    CancelToken token);

// Makes the parent of a file that is to be. invalid: the place is a directory.
Result<> prepare_place(const std::string& destination);

Error wrong_digest(const std::string& source, const std::string& found, const std::string& expected);

// Files by their SHA-256, and what is known of URLs. Does nothing and finds nothing when the directory is "".
class StageCache {
 public:
  struct Known {
    std::string version, sha256;
  };
  StageCache(std::string directory, std::int64_t bytes_max) : directory_(std::move(directory)), bytes_max_(bytes_max) {}
  std::string file_of(const std::string& sha256) const;     // its path when it is there, else ""
  std::optional<Known> find(const std::string& key) const;  // the version that we have of a URL, when its file is there
  // Takes in a copy of `file` and notes the version. Any thread; a full disk is no error of the staging.
  Result<> put(const std::string& file, const std::string& key, const Known& known) const;
  void drop(const std::string& sha256) const;  // a damaged one

 private:
  void make_room(std::int64_t bytes) const;
  std::string directory_;
  std::int64_t bytes_max_;
};

// The web side of stage().
Async<Staged> stage_from_web(net::HttpClient& client, std::string url, std::string destination, StageOptions options,
                             CancelToken token);

}  // namespace rille::transfer
