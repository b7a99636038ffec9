// The parsed options of rille.rent: what to look for, for how long, within which budget.
#pragma once

#include <algorithm>

#include "runtime/core/base/money.hpp"
#include "runtime/workflow/lease/manager.hpp"

namespace rille::lease {

inline bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A volume has no end; its row and its tag say a hundred years. Budgets reserve a month of it.
inline constexpr std::int64_t volume_ttl_ms = 100LL * 365 * 86'400'000, volume_reserve_ms = 730LL * 3'600'000;

struct Terms {
  provider::OfferQuery query;
  std::string asks;  // the query as text; rents with equal text share a query
  std::int64_t ttl_ms = 24 * 3'600'000;
  std::int64_t min_ttl_ms = 10 * 60'000;
  std::int64_t orphan_after_ms = 30 * 60'000;
  std::int64_t idle_after_ms = 0;         // 0: idle machines are kept
  double idle_below = 0.05;               // a utilization up to this, from 0 to 1, counts as idle
  std::int64_t hold_ms = 12 * 3'600'000;  // how long a suspended or diverged run keeps its machines
  std::int64_t disk_bytes = 0;            // size of the disk; 0: the offer's default
  provider::DiskPrices disk_prices;       // disk prices from the user's settings
  // The hourly price that the user gives; used if the provider gives none in dollars, or if a reservation is named.
  std::optional<Micros> price_micros_per_hour;
  bool unguarded = false;  // allow providers that never end a machine whose runner is lost
  bool cuda = true;        // false: only the user's programs use the GPU, so that Rille's CUDA code is not needed
  bool replace = false;    // replace a lost machine
  std::string cluster;     // name of a cluster of the run, whose machines may connect to each other; "": no cluster
  Value extra;             // provider-specific options: provider/rent_options.hpp

  // price_of: an offer's price in dollars per hour, or price_unknown. cap_of: the highest price, without the disk, to
  // which the offer's price may rise.
  Micros price_of(const provider::Offer& offer) const;
  Micros cap_of(const provider::Offer& offer, Micros disk) const;
  // The hourly price of the requested disk, or of a disk of `usual` bytes if none is requested; or price_unknown.
  Micros disk_of(const provider::Offer& offer, std::int64_t usual) const;
  // Why the offer cannot be rented: its disk, its price with that disk, or a missing dead man's switch. Null: it can.
  const char* obstacle(const provider::Offer& offer, const provider::Traits& traits, Micros disk) const;
};

// Parses the options. Fails with `invalid` and names the bad option; for an unknown one it suggests a similar name.
// asker: the Lua function that got the options, "rent" or "offers".
Result<Terms> read_terms(const Value& options, const char* asker = "rent");

// The error if no offer can be rented. `others`: offers that a less strict query finds, for the hint.
Error nothing_to_rent(const Terms& terms, bool refused, const char* obstacle,
                      const std::vector<provider::Offer>& others);

}  // namespace rille::lease
