// The ledger: what leases cost. Each machine that a lease has had is a row of the table `machines`; its price per hour
// is a chain of segments, since prices change. Time becomes money by the billing of the accepted offer. Amounts are
// integers: micro-dollars, or, where the user has configured no rate, millionths of the provider's currency. They are
// estimates until the provider's bill replaces them. Amounts of different currencies are never added. Call the
// functions that write in the transaction that updates the lease's row, so that row and ledger always agree.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/store/sqlite.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::lease {

struct Lease;

using Amounts = std::map<std::string, Micros>;  // currency -> amount; a missing currency means 0
void add_to(Amounts& sum, const Amounts& more);
std::string to_string(const Amounts& amounts);  // such as "$3.20 + 14.10 CNY"; "$0.00" if there are no amounts
Value to_value(const Amounts& amounts);         // such as {USD = 3.2, CNY = 14.1}
bool only_dollars(const Amounts& amounts);

// A price per hour.
struct Price {
  Micros micros = provider::price_unknown;
  std::string currency = "USD";
  std::string shown() const;  // such as "$1.50" or "10.00 CNY"; "?": the price is unknown
};
// The price of an offer: `dollars` if that is known, otherwise `asked`, in the offer's currency.
Price counted(Micros dollars, Micros asked, const provider::Offer& offer);

struct Segment {
  std::string part;                     // "machine", "disk", or "address"
  std::int64_t from_us = 0, to_us = 0;  // when the price applies; to_us 0: it still applies
  Micros micros_per_hour = 0;           // the price; provider::price_unknown: it is not known
  std::optional<Micros> amount;         // set: the dollars that the provider billed; the only segment of its machine
};

// A change of the machine's type: since from_us the machine is billed by `billing`, with its own unit and minimum.
struct Restart {
  std::int64_t from_us = 0;
  provider::Billing billing;
  std::string currency = "USD";
};

// One machine of a lease, from its creation to its end.
struct Tenure {
  std::int64_t generation = 1;
  std::string provider, region, machine_id;
  provider::Billing billing;
  std::string currency = "USD",
              disk_currency = "USD";    // currencies of the machine's and the disk's segments
  std::int64_t from_us = 0, to_us = 0;  // when the machine existed; to_us 0: it still exists
  std::int64_t ready_us = 0;            // when the machine became usable; 0: it has not yet
  std::int64_t busy_us = 0, busy_since_us = 0;
  std::vector<Segment> segments;
  std::vector<Restart> restarts;  // changes of type in time order; each applies to segments that begin at or after it

  Amounts costs(std::int64_t now_us) const;
  Micros cost(std::int64_t now_us) const;  // the costs in dollars, which budgets count
  const std::string& currency_of(const Segment& segment) const;
  Price price() const;  // the machine's latest price
  bool reconciled() const { return !segments.empty() && segments.front().amount; }
  bool unknown() const;  // whether the price of the machine, its disk or its address is unknown
  std::int64_t lived_us(std::int64_t now_us) const;
  std::int64_t starting_us(std::int64_t now_us) const;  // time from the machine's creation until it was usable
  std::int64_t idle_us(std::int64_t now_us) const;      // time since it was usable in which nothing ran on the machine
  Value to_value(std::int64_t now_us) const;
};

// month_of: the month of a time in UTC (as providers bill), such as "2026-11". month_start_us: the month's start.
std::string month_of(std::int64_t us);
std::int64_t month_start_us(std::int64_t us);
// Splits a cost over the months in which the machine existed, in proportion to time; the parts add up to the cost.
std::vector<std::pair<std::string, Amounts>> by_month(const Tenure& tenure, std::int64_t now_us);

// The cost of `ms` by this billing, with the machine at `price` and its disk at `disk` per hour.
Micros billed_micros(const provider::Billing& billing, Micros price, Micros disk, std::int64_t ms);

// Reads the machines of a lease. `lease`: the number of the lease's row.
Result<std::vector<Tenure>> read_tenures(store::Db& db, std::int64_t lease);
// Updates the ledger to match the lease's row: a machine begins, ends, or turns out not to have ended.
Result<> record_tenure(store::Db& db, const Lease& lease);
// Records a machine that is not the lease's own machine; `now_us` is when it ended.
Result<> record_stray(store::Db& db, const Lease& stray, std::int64_t now_us);
struct PriceStep {
  std::int64_t from_us = 0;
  Micros micros_per_hour = 0;
};

// Records prices per hour of the live machine, oldest first; each applies from its from_us on. whole: the steps are the
// full history since the first step, and replace what was recorded since then; otherwise steps older than the newest
// recorded segment are ignored. If the last price is in dollars, it is also written to the lease's row. Does nothing if
// the ledger counts the machine in a currency other than `currency`.
Result<> record_prices(store::Db& db, const Lease& lease, std::vector<PriceStep> steps, bool whole,
                       const std::string& currency = "USD");
// Call before the machine's type is changed (lease.change): from change.from_us on, both the old and the new price
// count, because it is not known when the provider switches from one to the other.
Result<> record_change(store::Db& db, const Lease& lease);
// record_changed: the change was done by now_us, and the old price ends. record_unchanged: the change did not happen,
// and the new price is removed.
Result<> record_changed(store::Db& db, const Lease& lease, std::int64_t from_us, std::int64_t now_us);
Result<> record_unchanged(store::Db& db, const Lease& lease, std::int64_t from_us);
// record_ready: the machine became usable. record_busy: the machine became busy (true) or idle (false).
Result<> record_ready(store::Db& db, const std::string& id, std::int64_t now_us);
Result<> record_busy(store::Db& db, const std::string& id, bool busy, std::int64_t now_us);
// Replaces the estimate by the provider's final bill and increments `settled`. Does nothing for a machine that has no
// row or is billed already.
Result<> record_bill(store::Db& db, const std::string& provider, const provider::Bill& bill, std::int64_t& settled);
// Provider and id of each ended machine that has no bill yet.
Result<std::vector<std::pair<std::string, std::string>>> unbilled(store::Db& db);

}  // namespace rille::lease
