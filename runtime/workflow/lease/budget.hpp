// Budgets: spending limits of a run, a tag and a month. A rent reserves its maximum cost in all budgets that apply, in
// the transaction that records the rent, so that two concurrent rents never reserve the same money.
#pragma once

#include <string>
#include <vector>

#include "runtime/workflow/lease/terms.hpp"

namespace rille::lease {

// The budgets that apply to a run: the run's own budget first (listed even without a limit), then those of its parent
// runs, of its tag, and of the month. A run's budget includes the spending of the child runs that it started. The lease
// `but` is not counted. A lease counts in the month in which it ends. `own`: count the run's own spending even without
// a limit. Count::kept uses the sums of add_kept (tally.hpp); then the lease `but` must have no row.
enum class Count { anew, kept };
Result<std::vector<Money>> count_money(store::Db& db, const std::string& run, const std::string& but,
                                       std::int64_t now_us, bool own = true, Count count = Count::anew);
// All limits of the home, with the money spent and reserved under each.
Result<std::vector<Money>> count_home(store::Db& db, std::int64_t now_us);

// Reserves money from now until the lease's expiry plus teardown: the price (or the maximum it may rise to) by the unit
// and minimum of its billing, its disk (requested or default), and its public address at `address` per hour. Shortens
// the lease to what the tightest budget can pay. Fails with kind budget when that is shorter than min_ttl, or when a
// price is unknown (except that of a default disk), and with kind quota when no more leases may be held.
Result<> reserve(store::Db& db, Lease& lease, const Terms& terms, const LeaseLimit& most, std::int64_t teardown_ms,
                 std::int64_t now_us, Micros address = 0);

// Reserves money for the type change in the lease's `change`: the cost so far and until the change is certainly over,
// then the new price until expiry. Never reduces the reservation, because the type may stay as it was. Fails with kind
// budget when the amount exceeds both the current reservation and what the tightest budget has left; the lease is not
// shortened, because the provider's end time for the machine is already set.
Result<> reserve_change(store::Db& db, Lease& lease, std::int64_t teardown_ms, std::int64_t now_us);

// A limit of the home: scope "month" or "tag:NAME"; -1 removes it.
struct Limit {
  std::string scope, alert_url;
  Micros micros = -1;
  std::int64_t alert_percent = 80;
};
Result<> set_limit(store::Db& db, const Limit& limit);

// An alert that is due for a limit of the home. take_alerts returns all unsent ones and marks them as sent.
struct Alert {
  Money money;
  std::string url;
};
Result<std::vector<Alert>> take_alerts(store::Db& db, std::int64_t now_us);

}  // namespace rille::lease
