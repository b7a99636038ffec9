// Leases as journal rows: reads and writes them whole. Single columns are also updated in release.cpp, resize.cpp,
// ledger_rows.cpp, tally.cpp, and copied for a fork in engine/rewrite.cpp.
#pragma once

#include "runtime/workflow/lease/manager.hpp"
#include "runtime/workflow/lease/parts.hpp"

namespace rille::lease {

Result<std::vector<Lease>> read_leases(store::Db& db, std::string_view where,
                                       std::initializer_list<store::SqlValue> values);
// Reads the lease without its request, token, scope, options, notice, tenures and the provider's answer. False: no such
// row.
Result<bool> read_brief(store::Db& db, const std::string& id, Lease& into);
// Compare and set: writes only if the row still matches `lease.seen`. state, code lease_moved: it does not. Within a
// generation only the changing columns are written: not the request, the options or the reservation. fenced: the write
// has a fence that covers the lease, so the journal has compared the run's epoch already.
Result<> write_lease(store::Db& db, const Lease& lease, bool fenced = false);
// The JSON columns that write_lease() will write; "": not written. Make them on the loop thread if possible, because
// many leases wait for the journal's thread.
struct RowTexts {
  std::string request, options, machine;
};
RowTexts texts_of(const Lease& lease);
// ending: for a released lease, when its machine stopped costing money.
Result<> write_lease(store::Db& db, const Lease& lease, const RowTexts& texts, bool fenced = false,
                     const Ending& ending = Ending());
bool covers(const store::Fence& fence, const Lease& lease);
// Writes `releasing` for a live lease that the same transaction has read.
Result<> write_ending(store::Db& db, const Lease& lease);
// Writes request.expires_wall_us, the time of the machine's own switch; does nothing if the row has a later generation.
Result<> write_switch(store::Db& db, const Lease& lease);
// is_moved: the error is lease_moved. is_lost: that, or another runner has the run. In both cases nothing was written.
bool is_moved(const Error& error);
bool is_lost(const Error& error);

}  // namespace rille::lease
