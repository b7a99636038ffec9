// What the leases of one budget have cost and may still cost. Private to runtime/workflow/lease.
#pragma once

#include <string>

#include "runtime/workflow/lease/manager.hpp"

namespace rille::lease {

// Which leases a budget counts.
struct Tally {
  std::string key;     // a unique name: "run:ID", "tag:NAME", "month:BEGINNING"
  std::string leases;  // SQL condition that selects the rows of the leases; contains ?1
  std::string runs;    // SQL query for the ids of the leases' runs; contains ?1; "": leases of any run
  std::string text;    // the value of ?1; "": the value is `number`
  std::int64_t number = 0;
};
Tally tally_of_family(const std::string& run);  // counts a run and the child runs that its script started
Tally tally_of_tag(const std::string& tag);
Tally tally_of_month(std::int64_t now_us);

// Adds the costs of the tally's leases to `money`, except those of the lease `but`.
Result<> add_all(store::Db& db, Money& money, const Tally& tally, const std::string& but, std::int64_t now_us);
// Adds the costs of all the tally's leases to `money`, in a transaction of the journal's writer. The sum is counted
// once and then updated whenever this connection writes a lease's row, so that the next rent need not count again. It
// is counted again after another process has written, after a rollback, and when a run is new or has changed.
Result<> add_kept(store::Db& writer, Money& money, const Tally& tally, std::int64_t now_us);
// What the lease costs in the month of now_us, until now, in dollars.
Micros month_micros(const Lease& lease, std::int64_t now_us);
// Tells add_kept's sums that the price of the lease with this number has changed.
void touch(store::Db& db, std::int64_t number);

}  // namespace rille::lease
