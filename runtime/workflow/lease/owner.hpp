// Whose a lease's machine is. A provider's "not found" says that a machine is gone only to those to whom it would show
// it: who asks with keys of another account is told nothing. So the row of a lease has whose keys it was rented with,
// and before its machine is taken for gone those in use now are held against them. Private to runtime/lease.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "runtime/workflow/lease/manager.hpp"

namespace rille::lease {

// By provider, what was told while offers were asked for. "": it does not say, or did not answer.
using Owners = std::map<std::string, Result<std::string>>;
// Asks those that the query accepts, all at once and for a moment only: who does not answer holds up no rent.
Async<bool> learn_owners(Loop& loop, std::vector<provider::Provider*> all, std::shared_ptr<Owners> owners,
                         CancelToken token);
// Of one of that region, which they know by now; "": nobody says.
Async<std::string> known_owner(const Owners& owners, provider::Provider* provider, std::string region,
                               CancelToken token);

// In the transaction that writes the lease's row.
Result<> record_owner(store::Db& db, const Lease& lease, const std::string& owner);

// Success: what this provider does not show of the lease is not there. auth, is_other_account: the lease was rented
// with keys of another account, and nothing is known of its machine. Else it could not be asked whose the keys are.
// A lease of which nobody knows whose it is passes.
Async<> check_owner(store::Db& db, provider::Provider* provider, std::shared_ptr<const Lease> lease, CancelToken token);
bool is_other_account(const Error& error);

}  // namespace rille::lease
