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

#include "runtime/base/value.hpp"
#include "runtime/store/sqlite.hpp"

namespace rille::engine {

// What is known of an operation from its beginning on.
struct EntryRow {
  std::int64_t run = 0;                // runs.number
  std::string fiber, kind, name, args_sha256, source;
  std::int64_t pos = 0, occurrence = 1, attempt = 1, next_us = 0, started_us = 0;
};

// Shared by an operation and its queued `begun` rows.
struct BegunRow {
  explicit BegunRow(bool in_journal) : written(in_journal) {}
  std::atomic<int> wanted{0};          // the attempt whose row is still of use; 0 once the operation has completed
  bool written;                        // a row may stand in the table; the writer's own after construction
};

struct Entry : EntryRow {
  std::int64_t seq = -1, ended_us = 0;
  Value value;
  std::optional<Error> error;
  bool completed() const { return seq >= 0; }
};

// The number that entries carry for that run. state: there is no such run.
Result<std::int64_t> run_number(store::Db& db, const std::string& run);

Result<> write_begun(store::Db& db, const EntryRow& row);
// value and error are JSON, error "" unless it failed. With `begun`, its row goes in the same transaction.
Result<> write_completed(store::Db& db, const EntryRow& row, std::int64_t seq, std::int64_t ended_us,
                         std::string_view value, std::string_view error, const BegunRow* begun);

// All of a run's, completed ones first, in order of seq. integrity: a row does not parse.
Result<> read_entries(store::Db& db, const std::string& run, const std::function<void(Entry)>& each);

}  // namespace rille::engine
