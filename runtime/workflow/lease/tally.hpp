// What the leases of one budget have cost and may still cost. Private to runtime/lease.
#pragma once

#include <string>

#include "runtime/workflow/lease/manager.hpp"

namespace rille::lease {

// Which leases a budget counts.
struct Tally {
  std::string key;     // tells them apart: "run:ID", "tag:NAME", "month:BEGINNING"
  std::string leases;  // the condition on their rows, of ?1
  std::string runs;    // a query of their runs, of ?1; "": of any
  std::string text;    // ?1, or else:
  std::int64_t number = 0;
};
Tally tally_of_family(const std::string& run);  // of a run and of those that its script has started
Tally tally_of_tag(const std::string& tag);
Tally tally_of_month(std::int64_t now_us);

// Adds them to `money`, without the lease `but`.
Result<> add_all(store::Db& db, Money& money, const Tally& tally, const std::string& but, std::int64_t now_us);
// The same without `but`, in a transaction of the journal's writer: counted once, and then kept for its connection as
// rows of leases are written there, so that the next rent need not count all over. It is counted again after another
// process has written, after a transaction was rolled back, and when a run is new or has moved.
Result<> add_kept(store::Db& writer, Money& money, const Tally& tally, std::int64_t now_us);
// What the connection's watcher does not know: that the lease of that number has another price.
void touch(store::Db& db, std::int64_t number);

}  // namespace rille::lease
