// What the ledger stores of a machine and the lease's row does not: the price of the public address; the start of the
// cost, if the provider does not bill the startup; the end of the cost, if that was before the lease was marked as
// released. A separate header, because few files write these.
#pragma once

#include "runtime/workflow/lease/ledger.hpp"

namespace rille::lease {

// The number of the lease's row; 0: no row.
Result<std::int64_t> number_of(store::Db& db, const Lease& lease);

// Records the price of the public address; 0: no charge. Call in the transaction that plans a generation: the address
// costs money from then on, because some clouds create it before the machine.
Result<> record_address(store::Db& db, const Lease& lease, Micros micros_per_hour);
// The recorded price of the public address for the lease's generation.
Result<Micros> address_micros(store::Db& db, const Lease& lease);

// When a lease's machine stopped costing money, as its release determined.
struct Ending {
  std::int64_t machine_us = 0;  // when the machine itself stopped costing money
  std::int64_t all_us = 0;      // when also its disk and all other parts did; 0: unknown, the row's release time counts
};
// Like record_tenure(), for a row that may be `released`: then no part of its machine costs money after `ending`.
Result<> record_tenure(store::Db& db, const Lease& lease, const Ending& ending);

// After a change of the machine's type: the new price, recorded from from_us on, counts only from since_us on.
Result<> record_restarted(store::Db& db, const Lease& lease, std::int64_t from_us, std::int64_t since_us);

// A machine whose offer is billed from the time it is live (Billing::from_live) costs nothing before `since_us`. Has an
// effect only until the machine is first ready; call before record_ready.
Result<> record_running(store::Db& db, const std::string& id, std::int64_t since_us);

}  // namespace rille::lease
