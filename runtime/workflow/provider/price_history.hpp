// What spot machines have cost, as people compare it: the points of a provider, type by type. Pure functions; any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/workflow/provider/account.hpp"

namespace rille::provider {

struct TypeHistory {
  std::string provider, type, currency;
  int zones = 0, points = 0;
  // Per hour. Over all zones, each price for as long as it stood; `now`: of the cheapest zone.
  Micros lowest = 0, median = 0, highest = 0, now = 0;
  std::int64_t from_us = 0;     // since when anything is known
  std::vector<Micros> samples;  // of the cheapest zone, at equal distances until now; -1: nothing is known yet

  Value to_value() const;
};

// The cheapest type now first. Points without an order, and from before since_us, may be among them: the last of those
// stood then.
std::vector<TypeHistory> summarize(const std::string& provider, const std::vector<PricePoint>& points,
                                   std::int64_t since_us, std::int64_t now_us);

// Eight heights from the lowest sample to the highest; a space where nothing is known.
std::string sparkline(const std::vector<Micros>& samples);

}  // namespace rille::provider
