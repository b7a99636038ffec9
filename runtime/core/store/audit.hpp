// The audit trail: the table `events`, each row of which bears a hash of itself and of the hash before it. A row that
// was altered, removed, moved or put in between shows, wherever it is; rows cut off at the end show only to whoever
// has kept the hash of a later one. One trail per journal, over all runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "runtime/core/store/sqlite.hpp"

namespace rille::store {

// Inside a write of the journal. `run` may be empty.
Result<> append_event(Db& db, std::string_view run, std::int64_t at_us, std::string_view event, std::string_view data);

struct Trail {
  std::int64_t rows = 0;
  std::string head;                    // the last row's hash; "" when there is none
  std::optional<std::int64_t> broken;  // the id of the first row whose hash is not what it should be
  bool met = false;                    // whether the hash that was looked for is one of them
};

// Reads the whole trail. `kept`: a hash noted down earlier (or the beginning of one, at least 8 digits), or "".
Result<Trail> check_trail(Db& db, std::string_view kept = "");

}  // namespace rille::store
