// The audit trail: the table `events`. Each row holds a hash of itself and of the previous hash, so an altered,
// removed, moved or inserted row is detected anywhere. Rows cut off at the end are detected only with a saved hash of a
// later row. One trail per journal, over all runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/core/store/sqlite.hpp"

namespace rille::store {

// Call inside a write of the journal. `run` may be empty.
Result<> append_event(Db& db, std::string_view run, std::int64_t at_us, std::string_view event, std::string_view data);

struct Trail {
  std::int64_t rows = 0;
  std::string head;                    // the last row's hash; "" when there is none
  std::optional<std::int64_t> broken;  // id of the first row with a wrong hash
  bool met = false;                    // whether the trail contains the hash given as `kept`
};

// Reads the whole trail. `kept`: a hash saved earlier (or its first 8 or more digits), or "".
Result<Trail> check_trail(Db& db, std::string_view kept = "");

}  // namespace rille::store
