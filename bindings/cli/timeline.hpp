// A run's timeline: journal entries and machines in one list, with start, duration and cost. Reads only the journal.
#pragma once

#include <vector>

#include "runtime/core/base/value.hpp"
#include "runtime/workflow/engine/engine.hpp"

namespace rille::cli {

// Returns rows sorted by start: {kind, key, state, attempt, start_seconds (since the run's start), seconds, source}.
// A machine's row (kind "lease") also has generation, machine, cost_micros, and cost in dollars. Unfinished rows end
// at `now_us`.
std::vector<Value> timeline(const engine::RunRow& run, const std::vector<Value>& entries,
                            const std::vector<lease::Lease>& leases, std::int64_t now_us);
// Formats the timeline as a table; each row gets a bar if `columns`, the terminal's width, leaves room for bars.
std::string timeline_table(const std::vector<Value>& rows, int columns);

}  // namespace rille::cli
