// The options of rille.rent, checked once: what to look for, for how long, within which budget.
#pragma once

#include <algorithm>

#include "runtime/core/base/units.hpp"
#include "runtime/workflow/lease/manager.hpp"

namespace rille::lease {

inline bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

struct Terms {
  provider::OfferQuery query;
  std::string asks;  // that, as text: who has the same asks the providers the same
  std::int64_t ttl_ms = 24 * 3'600'000;
  std::int64_t min_ttl_ms = 10 * 60'000;
  std::int64_t orphan_after_ms = 30 * 60'000;
  std::int64_t idle_after_ms = 0;         // 0: however long nobody uses it
  double idle_below = 0.05;               // at most so busy is unused
  std::int64_t hold_ms = 12 * 3'600'000;  // for a run that stands still: one that was suspended or has diverged
  std::int64_t disk_bytes = 0;            // 0: what comes with the offer
  provider::DiskPrices disk_prices;       // of the settings
  // What it costs where the provider does not say so in dollars, or where a reservation is named.
  std::optional<Micros> price_micros_per_hour;
  bool unguarded = false;  // also where nobody ends a machine whose runner is lost
  bool cuda = true;        // false: only programs of the user's run there, and need no CUDA part of Rille's
  bool replace = false;    // when the machine is lost, go on with another
  std::string cluster;     // of the run: whose members may talk to each other; "": none
  Value extra;             // what is said to its one provider alone: provider/rent_options.hpp

  // In dollars: what an offer costs per hour, or price_unknown; and the most that this may become, beside its disk.
  Micros price_of(const provider::Offer& offer) const;
  Micros cap_of(const provider::Offer& offer, Micros disk) const;
  // Of the disk that is ordered with it, or price_unknown; of `usual` bytes where none is asked for.
  Micros disk_of(const provider::Offer& offer, std::int64_t usual) const;
  // Null, or why it cannot be taken at all: its disk, its price with that disk, or its dead man.
  const char* obstacle(const provider::Offer& offer, const provider::Traits& traits, Micros disk) const;
};

// invalid: names the option, with did-you-mean for unknown ones.
// asker: who has them, "rent" or "offers".
Result<Terms> read_terms(const Value& options, const char* asker = "rent");

// `others`: what the loosened query finds, for the hint.
Error nothing_to_rent(const Terms& terms, bool refused, const char* obstacle,
                      const std::vector<provider::Offer>& others);

}  // namespace rille::lease
