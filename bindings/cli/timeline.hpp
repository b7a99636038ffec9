// What a run did, when, for how long, and for how much: its entries and its machines in one order. From the journal
// alone.
#pragma once

#include <vector>

#include "runtime/core/base/value.hpp"
#include "runtime/workflow/engine/engine.hpp"

namespace rille::cli {

// Rows by their beginning: {kind, key, state, attempt, start_seconds since the run's beginning, seconds, source}; of a
// machine (kind "lease") also generation, machine, cost_micros and cost in dollars. What is under way lasts until now.
std::vector<Value> timeline(const engine::RunRow& run, const std::vector<Value>& entries,
                            const std::vector<lease::Lease>& leases, std::int64_t now_us);
// As a table, with a bar per row where `columns` leaves room for one.
std::string timeline_table(const std::vector<Value>& rows, int columns);

}  // namespace rille::cli
