// The audit trail: the table `events`. Each row stores a hash of its content and of the previous row's hash, so that an
// altered, removed, moved or inserted row is detected. Rows removed at the end of the table are detected only by
// comparison with a saved hash. One trail per journal covers all runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/core/store/sqlite.hpp"

namespace rille::store {

// Call inside a write of the journal. `run` is empty for an event that belongs to no run.
Result<> append_event(Db& db, std::string_view run, std::int64_t at_us, std::string_view event, std::string_view data);

struct Trail {
  std::int64_t rows = 0;
  std::string head;                    // hash of the last row; "" if the table is empty
  std::optional<std::int64_t> broken;  // id of the first row with a wrong hash; empty: all rows are intact
  bool met = false;                    // whether a row has the hash given as `kept`
};

// Reads and checks all rows. `kept`: a hash saved earlier, or its first 8 or more digits; "": none.
Result<Trail> check_trail(Db& db, std::string_view kept = "");

}  // namespace rille::store
