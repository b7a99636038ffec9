// The rows of a run's record. Completed operations are appended to `entries` in completion order, so that a commit
// shared by many fibers writes few pages. Begun and incomplete operations are in `begun`, where most never appear: a
// row is written only if the operation outlasts the journal's next lazy write. The writers run on the journal's thread,
// the readers on the loop's, over any connection.
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

// An operation's row on its way to the writer's thread, shared by its queued writes.
struct QueuedEntry : EntryRow {
  std::atomic<std::int64_t> wanted{0};  // the attempt whose `begun` row is still needed; 0: completed
  bool written = false;                 // a `begun` row may exist; the writer's own once queued
  // The loop fills these before it queues the completion. error is "" unless it failed; both are JSON.
  std::int64_t seq = 0, ended_us = 0;
  std::string value, error;
  std::shared_ptr<const store::Blobs> blobs;  // set: the value is too large for a row
};

struct Entry : EntryRow {
  std::int64_t seq = -1, ended_us = 0;
  Value value;
  std::string blob;  // the blob's name if the value was not read; "" otherwise
  Value progress;    // of an incomplete step: see steps.cpp
  std::optional<Error> error;
  bool completed() const { return seq >= 0; }
};

// entries.id: the run's number in the high bits, seq in the low bits. A single integer key, so that rows are appended,
// and a run's rows are a range.
inline std::int64_t entry_id(std::int64_t run, std::int64_t seq) { return (run << 32) | seq; }

// "main/worker#1/prepare#2": the name of an entry for people, and the input for tokens and ids; a fiber's path has the
// same form. Unique within a run: in a name with a '#', a later '/' or '%', which could be mistaken for further parts
// of a path, is escaped as %2F or %25. All other names are unchanged, as in older records.
std::string make_key(std::string_view fiber, std::string_view name, std::int64_t n);
std::string key_of(const EntryRow& row);
// A name as escaped in keys; `room` is the buffer if it needs escaping.
std::string_view name_in_key(std::string_view name, std::string& room);
// The key of a row of either table, as an SQL expression.
inline constexpr std::string_view key_sql =
    "fiber||'/'||CASE WHEN name GLOB '*#*[/%]*' THEN replace(replace(name,'%','%25'),'/','%2F') ELSE name END"
    "||'#'||occurrence";

// The run's number in its entries. state: there is no such run.
Result<std::int64_t> run_number(store::Db& db, const std::string& run);

Result<> write_begun(store::Db& db, QueuedEntry& row, std::int64_t attempt, std::int64_t next_us,
                     std::string_view progress);
Result<> write_completed(store::Db& db, const QueuedEntry& row);
// The same for a step without arguments that succeeded in its first attempt and has no row in `begun`.
Result<> write_plain(store::Db& db, const QueuedEntry& row);

// Reads all entries of a run: completed ones first, by seq. integrity: a row does not parse, or a large value is not
// what was written. Without `blobs`, only the names of large values are read.
Result<> read_entries(store::Db& db, const std::string& run, const store::Blobs* blobs,
                      const std::function<void(Entry)>& each);

}  // namespace rille::engine
