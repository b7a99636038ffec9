// What the ledger knows of a machine beside its row: what its public address costs, from before there is a machine;
// since when it costs, where its start is free; until when it has cost, where that was before its row said so. In a
// header of its own because few write it: the lease layer, and who reaches machines.
#pragma once

#include "runtime/workflow/lease/ledger.hpp"

namespace rille::lease {

// Of the lease's row; 0: there is none.
Result<std::int64_t> number_of(store::Db& db, const Lease& lease);

// In the transaction that plans a generation, for its machines to come: 0: none is charged for. It counts from then on,
// for some clouds make it before the machine.
Result<> record_address(store::Db& db, const Lease& lease, Micros micros_per_hour);
// Of its generation, as it was recorded.
Result<Micros> address_micros(store::Db& db, const Lease& lease);

// Until when a lease's machine has cost, as its release has found out.
struct Ending {
  std::int64_t machine_us = 0;  // the machine itself
  std::int64_t all_us = 0;      // and all that came with it; 0: it is not known, and its row says
};
// As record_tenure() of a row, which may say `released`: then nothing of its machine has cost longer than that.
Result<> record_tenure(store::Db& db, const Lease& lease, const Ending& ending);

// The price that counts from `from_us` on, as the machine became another type, has cost nothing before `since_us`.
Result<> record_restarted(store::Db& db, const Lease& lease, std::int64_t from_us, std::int64_t since_us);

// A machine whose offer is billed from its being live (Billing::from_live) has not cost anything before `since_us`.
// Counts until it was ready for the first time; to be called before record_ready.
Result<> record_running(store::Db& db, const std::string& id, std::int64_t since_us);

}  // namespace rille::lease
