// Ledger facts of a machine that its lease's row does not hold: the price of its public address, from before the
// machine exists; the start of its cost, where startup is free; the end of its cost, where that is before the row says
// so. A separate header because few files write them: the lease layer, and the engine when it reaches machines.
#pragma once

#include "runtime/workflow/lease/ledger.hpp"

namespace rille::lease {

// The number of the lease's row; 0: no row.
Result<std::int64_t> number_of(store::Db& db, const Lease& lease);

// Call in the transaction that plans a generation, for its future machines; 0: no charge. The address costs from then
// on, because some clouds create it before the machine.
Result<> record_address(store::Db& db, const Lease& lease, Micros micros_per_hour);
// The recorded address price for the lease's current generation.
Result<Micros> address_micros(store::Db& db, const Lease& lease);

// When a lease's machine stopped costing money, as its release determined.
struct Ending {
  std::int64_t machine_us = 0;  // when the machine stopped costing money
  std::int64_t all_us = 0;      // when the machine and everything created with it stopped; 0: unknown, the row decides
};
// Like record_tenure(), for a row that may be `released`: then nothing of its machine costs longer than `ending`.
Result<> record_tenure(store::Db& db, const Lease& lease, const Ending& ending);

// After a change of type: the price recorded from `from_us` on starts to count at `since_us` instead.
Result<> record_restarted(store::Db& db, const Lease& lease, std::int64_t from_us, std::int64_t since_us);

// A machine whose offer is billed from the time it is live (Billing::from_live) costs nothing before `since_us`. Has an
// effect only until the machine is first ready; call before record_ready.
Result<> record_running(store::Db& db, const std::string& id, std::int64_t since_us);

}  // namespace rille::lease
