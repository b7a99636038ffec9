// SpotPriced: a provider that says what a spot machine costs while it runs.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/provider/provider.hpp"

namespace rille::provider {

// How the spot prices of a cloud can be followed.
struct SpotMarket {
  bool told = false;                         // they can
  bool by_zone = false;                      // each zone of a region has its own
  bool knows_before = false;                 // since when a price stands is told, and what was before
  bool heeds_cap = true;                     // a machine never costs more than CreateRequest::cap_micros_per_hour
  std::int64_t lasts_us = 5LL * 60'000'000;  // an answer serves so long
};

// Traits::look_every_ms of clouds where a look learns nothing but the price: their notice comes from the machine.
inline constexpr std::int64_t price_look_every_ms = 5 * 60'000;

class SpotPriced {
 public:
  virtual ~SpotPriced() = default;
  virtual SpotMarket market() const = 0;
  // What the spot machine `id`, rented by that offer, has cost per hour in the offer's currency since then, oldest
  // first. knows_before: with the price that stood then; else what this process has been told. May be empty. The same
  // answer serves all machines of a type and place for SpotMarket::lasts_us, so it may be asked for at each look.
  virtual Async<std::vector<PricePoint>> spot_prices(Offer offer, std::string id, std::int64_t since_us,
                                                     CancelToken token) = 0;
};

}  // namespace rille::provider
