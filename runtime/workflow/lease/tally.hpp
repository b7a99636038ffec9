// What the leases of one budget have cost and may still cost. Private to runtime/workflow/lease.
#pragma once

#include <string>

#include "runtime/workflow/lease/manager.hpp"

namespace rille::lease {

// Which leases a budget counts.
struct Tally {
  std::string key;     // unique key: "run:ID", "tag:NAME", "month:BEGINNING"
  std::string leases;  // SQL condition on the rows of the leases, with ?1
  std::string runs;    // SQL query of the runs that hold the leases, with ?1; "": any run
  std::string text;    // value of ?1; if empty, `number` is
  std::int64_t number = 0;
};
Tally tally_of_family(const std::string& run);  // leases of a run and of the runs that its script started
Tally tally_of_tag(const std::string& tag);
Tally tally_of_month(std::int64_t now_us);

// Adds the tally's leases to `money`, except the lease `but`.
Result<> add_all(store::Db& db, Money& money, const Tally& tally, const std::string& but, std::int64_t now_us);
// Adds all leases of the tally to `money`, in a transaction of the journal's writer. Counts once and then maintains the
// sum for its connection as lease rows are written there, so that the next rent need not recount. Recounts after
// another process has written, after a rollback, and when a run is new or has changed.
Result<> add_kept(store::Db& writer, Money& money, const Tally& tally, std::int64_t now_us);
// Tells the connection's watcher that the price of the lease with that number has changed.
void touch(store::Db& db, std::int64_t number);

}  // namespace rille::lease
