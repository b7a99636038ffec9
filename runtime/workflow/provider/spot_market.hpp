// SpotPriced: a provider that reports the price of a running spot machine.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/loop/loop.hpp"
#include "runtime/workflow/provider/provider.hpp"

namespace rille::provider {

// How a cloud reports spot prices.
struct SpotMarket {
  bool told = false;                         // the cloud reports spot prices
  bool by_zone = false;                      // each zone of a region has its own price
  bool knows_before = false;                 // the cloud reports past prices with their start times
  bool heeds_cap = true;                     // a machine never costs more than CreateRequest::cap_micros_per_hour
  std::int64_t lasts_us = 5LL * 60'000'000;  // how long an answer is cached
};

// Traits::look_every_ms of clouds that announce a preemption on the machine itself: polling only updates the price.
inline constexpr std::int64_t price_look_every_ms = 5 * 60'000;

class SpotPriced {
 public:
  virtual ~SpotPriced() = default;
  virtual SpotMarket market() const = 0;
  // The hourly prices of the spot machine `id`, rented from `offer`, since since_us, oldest first, in the offer's
  // currency. They start with the price at since_us if SpotMarket::knows_before, else with the first price that this
  // process received. May be empty. Answers are cached for SpotMarket::lasts_us per machine type and place, so frequent
  // calls are cheap.
  virtual Async<std::vector<PricePoint>> spot_prices(Offer offer, std::string id, std::int64_t since_us,
                                                     CancelToken token) = 0;
};

}  // namespace rille::provider
