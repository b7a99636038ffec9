// Leases as journal rows: the one place that knows their columns.
#pragma once

#include "runtime/lease/manager.hpp"

namespace rille::lease {

Result<std::vector<Lease>> read_leases(store::Db& db, std::string_view where,
                                       std::initializer_list<store::SqlValue> values);
Result<> write_lease(store::Db& db, const Lease& lease);

}  // namespace rille::lease
