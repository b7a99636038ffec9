// Reads and writes leases as rows of the journal. Only rows.cpp knows the columns of the table `leases`.
#pragma once

#include "runtime/workflow/lease/manager.hpp"
#include "runtime/workflow/lease/parts.hpp"

namespace rille::lease {

Result<std::vector<Lease>> read_leases(store::Db& db, std::string_view where,
                                       std::initializer_list<store::SqlValue> values);
// Reads a lease except its request, token, scope, options, preemption notice, tenures and the provider's answer. False:
// there is no such row.
Result<bool> read_brief(store::Db& db, const std::string& id, Lease& into);
// Writes the lease's row, but only if the row still matches `lease.seen`; otherwise fails with `state`, code
// lease_moved. Within a generation only the changing columns are written, not the request, the options or the
// reservation. fenced: the write has a fence that covers the lease, so the journal has compared the epoch.
Result<> write_lease(store::Db& db, const Lease& lease, bool fenced = false);
// The texts of the JSON columns that write_lease() will write; "": the column is not written. Make them on the loop
// thread if possible, because many leases wait for the journal's thread.
struct RowTexts {
  std::string request, options, machine;
};
RowTexts texts_of(const Lease& lease);
// Like write_lease above, with texts made before. ending: when a released lease's machine stopped costing money.
Result<> write_lease(store::Db& db, const Lease& lease, const RowTexts& texts, bool fenced = false,
                     const Ending& ending = Ending());
bool covers(const store::Fence& fence, const Lease& lease);
// Writes `releasing` for a live lease that the same transaction has read.
Result<> write_ending(store::Db& db, const Lease& lease);
// Writes request.expires_wall_us, the time at which the provider ends the machine by itself. Does nothing if the row
// has a later generation.
Result<> write_switch(store::Db& db, const Lease& lease);
// Whether a write was refused. is_moved: because the row has changed (lease_moved). is_lost: for that reason, or
// because another process runs the run.
bool is_moved(const Error& error);
bool is_lost(const Error& error);

}  // namespace rille::lease
