// The market: what a place costs and whether it has any left, at an instant. Functions of the seed and the time alone:
// asking changes nothing.
#pragma once

#include "runtime/workflow/provider/sim/catalogue.hpp"
#include "runtime/workflow/provider/sim/dice.hpp"

namespace rille::provider::sim {

constexpr std::int64_t minute_us = 60'000'000, hour_us = 60 * minute_us;

class Market {
 public:
  // scarcity: the share of the time in which a place on demand has nothing left; spot is scarcer.
  Market(Dice dice, double scarcity) : dice_(dice), scarcity_(scarcity) {}

  // Spot prices move around their mean, by the hour, the day's third and the day and a half, in steps of five minutes;
  // on demand they stand still.
  Micros price_micros_per_hour(const Place& place, std::int64_t at_us) const;
  bool sold_out(const Place& place, std::int64_t at_us) const;

 private:
  double drift(std::string_view what, std::int64_t at_us, std::int64_t period_us) const;
  Dice dice_;
  double scarcity_;
};

}  // namespace rille::provider::sim
