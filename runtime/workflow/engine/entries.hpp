// The rows of a run's record, in two tables of the journal. Completed operations are appended to `entries` in
// completion order, so that a commit shared by many fibers writes few pages. An operation that has begun and not
// completed has a row in `begun`, but only if it outlasts the journal's next lazy write: most never get that row. The
// functions that write run on the journal's thread; those that read run on the loop's thread, over any connection.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/core/base/value.hpp"
#include "runtime/core/store/blobs.hpp"
#include "runtime/core/store/sqlite.hpp"

namespace rille::engine {

// The fields of an operation that are known when it begins.
struct EntryRow {
  std::int64_t run = 0;  // runs.number
  std::string fiber, kind, name, args_sha256, source;
  std::int64_t pos = 0, occurrence = 1, attempt = 1, next_us = 0, started_us = 0;
};

// An operation's row on its way to the journal's thread, shared by all queued writes of that operation.
struct QueuedEntry : EntryRow {
  std::atomic<std::int64_t> wanted{0};  // the attempt whose `begun` row is still needed; 0: the operation is completed
  bool written = false;                 // a `begun` row may exist; once queued, only the journal's thread uses this
  // The loop's thread fills these before it queues the completion. value and error are JSON; error is "" on success.
  std::int64_t seq = 0, ended_us = 0;
  std::string value, error;
  std::shared_ptr<const store::Blobs> blobs;  // set: the value is too large for a row and is stored as a blob
};

struct Entry : EntryRow {
  std::int64_t seq = -1, ended_us = 0;
  Value value;
  std::string blob;  // the blob's name if the large value was not read; "" otherwise
  Value progress;    // what an incomplete step wrote so far; see steps.cpp
  std::optional<Error> error;
  bool completed() const { return seq >= 0; }
};

// The column entries.id: the run's number in the high bits, seq in the low 32 bits. With this single integer key, new
// rows are appended and the rows of one run are contiguous.
inline std::int64_t entry_id(std::int64_t run, std::int64_t seq) { return (run << 32) | seq; }

// Makes an entry's key, such as "main/worker#1/prepare#2": shown to users, and the input for tokens and ids. A fiber's
// path has the same form. Keys are unique within a run: if a name has a '/' or '%' behind a '#', which could be
// mistaken for a further part of the path, each '/' and '%' in it is written as %2F and %25. All other names are
// unchanged.
std::string make_key(std::string_view fiber, std::string_view name, std::int64_t n);
std::string key_of(const EntryRow& row);
// Returns the name as it is escaped in keys; `room` holds the text if the name needs escaping.
std::string_view name_in_key(std::string_view name, std::string& room);
// An SQL expression for the key of a row of `entries` or `begun`.
inline constexpr std::string_view key_sql =
    "fiber||'/'||CASE WHEN name GLOB '*#*[/%]*' THEN replace(replace(name,'%','%25'),'/','%2F') ELSE name END"
    "||'#'||occurrence";

// The number that stands for the run in its entries' ids. Fails with `state` if there is no such run.
Result<std::int64_t> run_number(store::Db& db, const std::string& run);

Result<> write_begun(store::Db& db, QueuedEntry& row, std::int64_t attempt, std::int64_t next_us,
                     std::string_view progress);
Result<> write_completed(store::Db& db, const QueuedEntry& row);
// write_completed for a step without arguments that succeeded in its first attempt and has no row in `begun`.
Result<> write_plain(store::Db& db, const QueuedEntry& row);

// Reads all entries of a run: completed ones first, by seq. Fails with `integrity` if a row does not parse, or if a
// large value differs from what was written. If `blobs` is null, only the names of large values are read.
Result<> read_entries(store::Db& db, const std::string& run, const store::Blobs* blobs,
                      const std::function<void(Entry)>& each);

}  // namespace rille::engine
