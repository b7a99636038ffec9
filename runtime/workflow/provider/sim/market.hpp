// The market: price and availability of a place (machine type, region, spot or not) at an instant. Pure functions of
// the seed and the time.
#pragma once

#include "runtime/workflow/provider/sim/catalogue.hpp"
#include "runtime/workflow/provider/sim/dice.hpp"
#include "runtime/workflow/provider/sim/options.hpp"

namespace rille::provider::sim {

constexpr std::int64_t minute_us = 60'000'000, hour_us = 60 * minute_us;

class Market {
 public:
  // scarcity: the share of time in which an on-demand place is sold out; for spot places it is 1.5 times as large.
  // prices: as Options::prices.
  Market(Dice dice, double scarcity, std::map<std::string, TypePrice> prices = {})
      : dice_(dice), scarcity_(scarcity), prices_(std::move(prices)) {}

  // Spot prices vary around their mean with periods of an hour, a third of a day and a day and a half, in steps of five
  // minutes; on-demand prices are constant.
  Micros price_micros_per_hour(const OfferParts& place, std::int64_t at_us) const;
  bool sold_out(const OfferParts& place, std::int64_t at_us) const;

 private:
  double drift(std::string_view what, std::int64_t at_us, std::int64_t period_us) const;
  Dice dice_;
  double scarcity_;
  std::map<std::string, TypePrice> prices_;
};

}  // namespace rille::provider::sim
