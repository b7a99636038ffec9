// Which account owns a lease's machine. A provider's "not found" proves that a machine is gone only if the keys in use
// belong to its account; keys of another account never see it. So a lease's row stores the account of the keys it was
// rented with, which is compared with the current one before a machine counts as gone. Private to
// runtime/workflow/lease.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "runtime/workflow/lease/manager.hpp"

namespace rille::lease {

// By provider: the account, as learned while offers were queried. "": the provider does not name it, or did not answer.
using Owners = std::map<std::string, Result<std::string>>;
// Asks these providers concurrently, with a short time limit, so that one that does not answer delays no rent.
Async<bool> learn_owners(Loop& loop, std::vector<provider::Provider*> all, std::shared_ptr<Owners> owners,
                         CancelToken token);
// The account in that region, from `owners`; "": unknown.
Async<std::string> known_owner(const Owners& owners, provider::Provider* provider, std::string region,
                               CancelToken token);

// Call in the transaction that writes the lease's row.
Result<> record_owner(store::Db& db, const Lease& lease, const std::string& owner);

// Success: a machine of the lease that this provider does not show does not exist; also if the lease's account is
// unknown. auth, is_other_account: the lease was rented with keys of another account, and the state of its machine is
// unknown. Other errors: the current account could not be queried.
Async<> check_owner(store::Db& db, provider::Provider* provider, std::shared_ptr<const Lease> lease, CancelToken token);
bool is_other_account(const Error& error);

}  // namespace rille::lease
