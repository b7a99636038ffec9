// The options of rille.rent, checked once: what to look for, for how long, within which budget.
#pragma once

#include "runtime/base/units.hpp"
#include "runtime/lease/manager.hpp"

namespace rille::lease {

struct Terms {
  provider::OfferQuery query;
  std::string provider;               // "" = any
  std::int64_t ttl_ms = 24 * 3'600'000;
  std::int64_t min_ttl_ms = 10 * 60'000;
  std::int64_t orphan_after_ms = 30 * 60'000;
  std::int64_t hold_ms = 12 * 3'600'000;  // for a run that stands still: one that was suspended or has diverged
};

// invalid: names the option, with did-you-mean for unknown ones.
Result<Terms> read_terms(const Value& options);

// What the leases of a run (but one) have cost, and what the others may still cost until their ends.
Result<Money> count_money(store::Db& db, const std::string& run, const std::string& but, std::int64_t now_us);

// Reserves price x ttl within the run's budget: shortens the lease to what is left, or refuses (kind budget) when
// that is below min_ttl; and one of the leases that the run may hold (kind quota). To be called in the transaction that
// writes the lease's row: two rents at a time then never get the same money.
Result<> reserve(store::Db& db, Lease& lease, const Terms& terms, std::int64_t leases_max, std::int64_t now_us);

Error nothing_to_rent(const Terms& terms, bool refused);

}  // namespace rille::lease
