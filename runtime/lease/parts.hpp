// Since when a machine costs, where its start is free: known only once somebody has seen it run. For who reaches
// machines; in a header of its own because few write it.
#pragma once

#include "runtime/lease/ledger.hpp"

namespace rille::lease {

// A machine whose offer is billed from its being live (Billing::from_live) has not cost anything before `since_us`.
// Counts until it was ready for the first time; to be called before record_ready.
Result<> record_running(store::Db& db, const std::string& lease, std::int64_t since_us);

}  // namespace rille::lease
