// A run's timeline: entries and machines in one order, with start, duration and cost. From the journal alone.
#pragma once

#include <vector>

#include "runtime/core/base/value.hpp"
#include "runtime/workflow/engine/engine.hpp"

namespace rille::cli {

// Rows sorted by start: {kind, key, state, attempt, start_seconds since the run's start, seconds, source}; a machine
// (kind "lease") also has generation, machine, cost_micros, and cost in dollars. Unfinished rows last until now.
std::vector<Value> timeline(const engine::RunRow& run, const std::vector<Value>& entries,
                            const std::vector<lease::Lease>& leases, std::int64_t now_us);
// As a table, with a bar per row if `columns` leaves room for one.
std::string timeline_table(const std::vector<Value>& rows, int columns);

}  // namespace rille::cli
