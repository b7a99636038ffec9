// Which provider account owns a lease's machine. If a provider does not find a machine, the machine is gone only if the
// API keys in use belong to the machine's account: keys of another account never see it. So a lease's row stores the
// account that rented the machine, and that account is compared with the current one before a machine counts as gone.
// Private to runtime/workflow/lease.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "runtime/workflow/lease/manager.hpp"

namespace rille::lease {

// Provider name -> the current account, as learned while offers were queried. "": the provider does not name the
// account, or did not answer.
using Owners = std::map<std::string, Result<std::string>>;
// Asks the providers for their accounts concurrently, with a short time limit, so that no rent waits long. Fills
// `owners`.
Async<bool> learn_owners(Loop& loop, std::vector<provider::Provider*> all, std::shared_ptr<Owners> owners,
                         CancelToken token);
// The provider's account in the region, according to `owners`; "": unknown.
Async<std::string> known_owner(const Owners& owners, provider::Provider* provider, std::string region,
                               CancelToken token);

// Stores the account that rents the lease. Call in the transaction that writes the lease's row.
Result<> record_owner(store::Db& db, const Lease& lease, const std::string& owner);

// Checks whether the current keys can see the lease's machine. Success: they belong to the account that rented it, or
// that account is unknown; a machine that the provider does not show then does not exist. Fails with `auth`
// (is_other_account) if the lease was rented by another account: the state of the machine is then unknown. Fails with
// another error if the current account could not be queried.
Async<> check_owner(store::Db& db, provider::Provider* provider, std::shared_ptr<const Lease> lease, CancelToken token);
bool is_other_account(const Error& error);

}  // namespace rille::lease
