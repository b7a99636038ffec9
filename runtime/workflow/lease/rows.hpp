// Leases as journal rows: the one place that knows their columns.
#pragma once

#include "runtime/workflow/lease/manager.hpp"
#include "runtime/workflow/lease/parts.hpp"

namespace rille::lease {

Result<std::vector<Lease>> read_leases(store::Db& db, std::string_view where,
                                       std::initializer_list<store::SqlValue> values);
// Without its request, token, scope, options, notice, tenures and the provider's answer. False: there is no such row.
Result<bool> read_brief(store::Db& db, const std::string& id, Lease& into);
// Compare and set: writes only over the row that `lease.seen` describes. state, code lease_moved: it is another now.
// Of the same generation only what moves is written: not its request and its options, nor the money that was reserved.
// fenced: the write bears a fence that covers the lease, so that the journal has compared the run's epoch already.
Result<> write_lease(store::Db& db, const Lease& lease, bool fenced = false);
// The columns that are JSON, as far as write_lease() will write them: "" is left out. The journal's thread is what many
// leases wait for, so that they are made before, where that can be.
struct RowTexts {
  std::string request, options, machine;
};
RowTexts texts_of(const Lease& lease);
// ending: of one that is released, until when its machine has cost.
Result<> write_lease(store::Db& db, const Lease& lease, const RowTexts& texts, bool fenced = false,
                     const Ending& ending = Ending());
bool covers(const store::Fence& fence, const Lease& lease);
// A live one that this transaction has read, to be ended: nothing can have come in between.
Result<> write_ending(store::Db& db, const Lease& lease);
// What the machine's own switch is set for, request.expires_wall_us; of a later generation nothing is written.
Result<> write_switch(store::Db& db, const Lease& lease);
// Whether an error says that, or that the whole run has another runner: the writer has lost, and nothing was written.
bool is_moved(const Error& error);
bool is_lost(const Error& error);

}  // namespace rille::lease
