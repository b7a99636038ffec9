// Leases as journal rows: the one place that knows their columns.
#pragma once

#include "runtime/lease/manager.hpp"

namespace rille::lease {

Result<std::vector<Lease>> read_leases(store::Db& db, std::string_view where,
                                       std::initializer_list<store::SqlValue> values);
// Compare and set: writes only over the row that `lease.seen` describes. state, code lease_moved: it is another now.
Result<> write_lease(store::Db& db, const Lease& lease);
// Whether an error says that, or that the whole run has another runner: the writer has lost, and nothing was written.
bool is_moved(const Error& error);
bool is_lost(const Error& error);

}  // namespace rille::lease
