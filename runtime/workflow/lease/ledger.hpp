// The ledger: what leases cost. Each machine that a lease has had is a row of the table `machines`; what it costs per
// hour is a chain of segments, since prices move. Time turns into money by the billing of the offer that was taken.
// Amounts are integers, estimates until the provider's bill replaces them: micro-dollars, or millionths of the currency
// that the provider asks in, where the user has given no rate for that. Nothing is ever added across currencies.
// The functions that write are for the transaction that moves the lease's row, so that row and ledger never differ.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/core/store/sqlite.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::lease {

struct Lease;

using Amounts = std::map<std::string, Micros>;  // by currency; none is 0
void add_to(Amounts& sum, const Amounts& more);
std::string to_string(const Amounts& amounts);  // "$3.20 + 14.10 CNY"; "$0.00" where there are none
Value to_value(const Amounts& amounts);         // {USD = 3.2, CNY = 14.1}
bool only_dollars(const Amounts& amounts);

// What an hour costs.
struct Price {
  Micros micros = provider::price_unknown;
  std::string currency = "USD";
  std::string shown() const;  // "$1.50", "10.00 CNY", "?"
};
// Of an offer: in dollars where they are known, else what its provider asks.
Price counted(Micros dollars, Micros asked, const provider::Offer& offer);

struct Segment {
  std::string part;                     // "machine", "disk", or "address"
  std::int64_t from_us = 0, to_us = 0;  // to_us 0: it goes on
  Micros micros_per_hour = 0;           // or provider::price_unknown
  std::optional<Micros> amount;         // as billed, in dollars; then there is one segment only
};

// From when on a machine was billed anew, since it became another type: by units and a minimum of their own.
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
  std::string currency = "USD", disk_currency = "USD";  // of the segments; of an address it is dollars
  std::int64_t from_us = 0, to_us = 0;                  // to_us 0: it lives
  std::int64_t ready_us = 0;                            // could be used from then on; 0: not yet
  std::int64_t busy_us = 0, busy_since_us = 0;
  std::vector<Segment> segments;
  std::vector<Restart> restarts;  // in the order of time; of the segments that begin from then on

  Amounts costs(std::int64_t now_us) const;
  Micros cost(std::int64_t now_us) const;  // of that the dollars, which are what budgets count
  const std::string& currency_of(const Segment& segment) const;
  Price price() const;  // of the machine, at its last
  bool reconciled() const { return !segments.empty() && segments.front().amount; }
  bool unknown() const;  // a part has no price that is known
  std::int64_t lived_us(std::int64_t now_us) const;
  std::int64_t starting_us(std::int64_t now_us) const;  // until it could be used
  std::int64_t idle_us(std::int64_t now_us) const;      // after that, and nothing ran on it
  Value to_value(std::int64_t now_us) const;
};

// The month in which an instant lies, "2026-11", and its first instant. UTC, as providers bill.
std::string month_of(std::int64_t us);
std::int64_t month_start_us(std::int64_t us);
// A cost by the months in which the machine lived, in proportion to its time; the sum is the cost.
std::vector<std::pair<std::string, Amounts>> by_month(const Tenure& tenure, std::int64_t now_us);

// What `ms` cost by this billing at `price` and with a disk at `disk`, per hour.
Micros billed_micros(const provider::Billing& billing, Micros price, Micros disk, std::int64_t ms);

// lease: its number.
Result<std::vector<Tenure>> read_tenures(store::Db& db, std::int64_t lease);
// Brings the ledger to what the lease's row says by now: a machine begins, ends, or was not over yet.
Result<> record_tenure(store::Db& db, const Lease& lease);
// A machine besides the lease's own, which has lived until now.
Result<> record_stray(store::Db& db, const Lease& stray, std::int64_t now_us);
struct PriceStep {
  std::int64_t from_us = 0;
  Micros micros_per_hour = 0;
};

// What the machine that lives has cost per hour since those instants, oldest first. whole: that is all that it has cost
// since the first of them, and takes the place of what was known before; else only the newest segment is older.
// The lease's row bears the last price, if it is in dollars. One that is counted in another currency: nothing.
Result<> record_prices(store::Db& db, const Lease& lease, std::vector<PriceStep> steps, bool whole,
                       const std::string& currency = "USD");
// The machine is about to become what lease.change says: from change.from_us on both prices count, for nobody here
// knows when the provider ends the one and begins the other.
Result<> record_change(store::Db& db, const Lease& lease);
// It has become that by now_us: the price before counts no more. Or it has not: the other one never did.
Result<> record_changed(store::Db& db, const Lease& lease, std::int64_t from_us, std::int64_t now_us);
Result<> record_unchanged(store::Db& db, const Lease& lease, std::int64_t from_us);
// It can be used; something runs on it, or nothing any more.
Result<> record_ready(store::Db& db, const std::string& id, std::int64_t now_us);
Result<> record_busy(store::Db& db, const std::string& id, bool busy, std::int64_t now_us);
// The provider's final word replaces the estimate. A machine that is in no row, or is billed already: nothing.
// Adds one to `settled` when it was news.
Result<> record_bill(store::Db& db, const std::string& provider, const provider::Bill& bill, std::int64_t& settled);
// Machines that are over and have no bill yet: provider and machine.
Result<std::vector<std::pair<std::string, std::string>>> unbilled(store::Db& db);

}  // namespace rille::lease
