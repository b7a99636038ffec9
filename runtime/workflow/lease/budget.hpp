// Budgets: what a run, a tag and a month may spend. A rent reserves what it may cost until its end in all of them at
// once, in the transaction that records it: two rents at a time never get the same money.
#pragma once

#include <string>
#include <vector>

#include "runtime/workflow/lease/terms.hpp"

namespace rille::lease {

// What bounds a run: its own budget first, which is there without a limit, too, then its parents', its tag's, and the
// month's. A run's counts what the runs that it has started spend. Without the lease `but`. A lease counts in the month
// in which it ends. `own`: the run's own is counted even without a limit. kept: see add_kept; `but` has no row then.
enum class Count { anew, kept };
Result<std::vector<Money>> count_money(store::Db& db, const std::string& run, const std::string& but,
                                       std::int64_t now_us, bool own = true, Count count = Count::anew);
// All limits of the home, with what is spent and reserved.
Result<std::vector<Money>> count_home(store::Db& db, std::int64_t now_us);

// Reserves, from now until the lease's expiry and for its teardown: the price, or the most that it may rise to, by the
// unit and minimum of its billing, its disk, asked for or not, and its public address at so much per hour. Shortens the
// lease to what the tightest budget leaves, or refuses (kind budget) when that is below min_ttl, or when a price is not
// known, but that of a disk that nobody asked for; and one of the leases that the run may hold (kind quota).
Result<> reserve(store::Db& db, Lease& lease, const Terms& terms, std::int64_t leases_max, std::int64_t teardown_ms,
                 std::int64_t now_us, Micros address = 0);

// Reserves for a lease whose machine becomes what its `change` says: what it has cost until that is surely over, then
// the new price until its expiry. Never less than before, for it may stay as it was. Refuses (kind budget) what is more
// than that and than what the tightest budget leaves; the lease is not shortened, for its machine's own end stands.
Result<> reserve_change(store::Db& db, Lease& lease, std::int64_t teardown_ms, std::int64_t now_us);

// A limit of the home: scope "month" or "tag:NAME"; -1 removes it.
struct Limit {
  std::string scope, alert_url;
  Micros micros = -1;
  std::int64_t alert_percent = 80;
};
Result<> set_limit(store::Db& db, const Limit& limit);

// Limits of the home whose alert is due and has not been given, which are marked as given.
struct Alert {
  Money money;
  std::string url;
};
Result<std::vector<Alert>> take_alerts(store::Db& db, std::int64_t now_us);

}  // namespace rille::lease
