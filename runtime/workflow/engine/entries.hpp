// The rows of a run's record. What has completed is appended to `entries` in the order of completion, so that a commit
// shared by many fibers writes few pages; what has begun and is not complete stands in `begun`, where most operations
// never appear: a row is written only when the operation outlasts the journal's next lazy write.
// The writers run on the journal's thread, the readers on the loop's, over any connection.
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

// What is known of an operation from its beginning on.
struct EntryRow {
  std::int64_t run = 0;  // runs.number
  std::string fiber, kind, name, args_sha256, source;
  std::int64_t pos = 0, occurrence = 1, attempt = 1, next_us = 0, started_us = 0;
};

// An operation's row on its way to the writer's thread, shared by its queued writes.
struct QueuedEntry : EntryRow {
  std::atomic<std::int64_t> wanted{0};  // the attempt whose `begun` row is still of use; 0: it has completed
  bool written = false;                 // a `begun` row may be there; the writer's own once a write is queued
  // The loop fills these before it queues the completion. error is "" unless it failed; both are JSON.
  std::int64_t seq = 0, ended_us = 0;
  std::string value, error;
  std::shared_ptr<const store::Blobs> blobs;  // set: the value is too large for a row
};

struct Entry : EntryRow {
  std::int64_t seq = -1, ended_us = 0;
  Value value;
  std::string blob;  // the name of a value that was not read; "" otherwise
  Value progress;    // of a step that has not completed: see steps.cpp
  std::optional<Error> error;
  bool completed() const { return seq >= 0; }
};

// entries.id: the run's number above, seq below. One integer key, so that rows are appended, and those of a run are a
// range.
inline std::int64_t entry_id(std::int64_t run, std::int64_t seq) { return (run << 32) | seq; }

// "main/worker#1/prepare#2": how people name an entry, and what tokens and ids are derived from; a fiber's path has the
// same form. Unique within a run: a name with a '/' or '%' somewhere after a '#', which could pass for several parts of
// a path, has them as %2F and %25. All other names stand as they are, as in older records.
std::string make_key(std::string_view fiber, std::string_view name, std::int64_t n);
std::string key_of(const EntryRow& row);
// A name as keys have it; `room` holds it if it had to be escaped.
std::string_view name_in_key(std::string_view name, std::string& room);
// The key of a row of either table, as an SQL expression.
inline constexpr std::string_view key_sql =
    "fiber||'/'||CASE WHEN name GLOB '*#*[/%]*' THEN replace(replace(name,'%','%25'),'/','%2F') ELSE name END"
    "||'#'||occurrence";

// The number that entries carry for that run. state: there is no such run.
Result<std::int64_t> run_number(store::Db& db, const std::string& run);

Result<> write_begun(store::Db& db, QueuedEntry& row, std::int64_t attempt, std::int64_t next_us,
                     std::string_view progress);
Result<> write_completed(store::Db& db, const QueuedEntry& row);
// The same of a step without arguments whose first attempt has ended well, and of which no row is in `begun`.
Result<> write_plain(store::Db& db, const QueuedEntry& row);

// All of a run's, completed ones first, in order of seq. integrity: a row does not parse, or a large value is not what
// was written. Without `blobs`, large values are named only.
Result<> read_entries(store::Db& db, const std::string& run, const store::Blobs* blobs,
                      const std::function<void(Entry)>& each);

}  // namespace rille::engine
