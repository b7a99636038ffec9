// Summarizes a provider's spot price history by type. Pure functions; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/workflow/provider/account.hpp"

namespace rille::provider {

struct TypeHistory {
  std::string provider, type, currency;
  int zones = 0, points = 0;
  // Per hour, over all zones, weighted by time; `now`: of the cheapest zone.
  Micros lowest = 0, median = 0, highest = 0, now = 0;
  std::int64_t from_us = 0;     // start of the known history
  std::vector<Micros> samples;  // of the cheapest zone, evenly spaced until now; -1: unknown

  Value to_value() const;
};

// Cheapest type first. The points may be unordered and start before since_us: the latest earlier point was valid then.
std::vector<TypeHistory> summarize(const std::string& provider, const std::vector<PricePoint>& points,
                                   std::int64_t since_us, std::int64_t now_us);

// Eight heights from the lowest to the highest sample; a space for unknown.
std::string sparkline(const std::vector<Micros>& samples);

}  // namespace rille::provider
