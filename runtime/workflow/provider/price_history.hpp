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
  // Hourly prices over all zones; the median is weighted by time; `now` is the current price in the cheapest zone.
  Micros lowest = 0, median = 0, highest = 0, now = 0;
  std::int64_t from_us = 0;     // start of the known history
  std::vector<Micros> samples;  // lowest price of all zones at evenly spaced times until now; -1: unknown

  Value to_value() const;
};

// One summary per type, cheapest type first. `points` may be in any order; the last point of a zone before since_us
// gives the zone's price at since_us.
std::vector<TypeHistory> summarize(const std::string& provider, const std::vector<PricePoint>& points,
                                   std::int64_t since_us, std::int64_t now_us);

// One character per sample: a bar of eight possible heights between the lowest and highest sample, or a space: unknown.
std::string sparkline(const std::vector<Micros>& samples);

}  // namespace rille::provider
