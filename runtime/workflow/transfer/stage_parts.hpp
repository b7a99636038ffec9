// Internal parts of staging: progress and copies in pieces. Private to runtime/workflow/transfer.
#pragma once

#include "runtime/core/store/file.hpp"
#include "runtime/core/store/hash.hpp"
#include "runtime/core/store/stage_cache.hpp"
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

// The web side of stage().
Async<Staged> stage_from_web(net::HttpClient& client, std::string url, std::string destination, StageOptions options,
                             CancelToken token);

}  // namespace rille::transfer
