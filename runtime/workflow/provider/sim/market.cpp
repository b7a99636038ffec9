#include "runtime/workflow/provider/sim/market.hpp"

#include <algorithm>

namespace rille::provider::sim {

// A smooth random curve over time with values from -1 to 1: interpolates between one random point per period.
double Market::drift(std::string_view what, std::int64_t at_us, std::int64_t period_us) const {
  auto knot = static_cast<std::uint64_t>(at_us / period_us);
  double part = static_cast<double>(at_us % period_us) / static_cast<double>(period_us);
  double a = dice_.unit(what, knot), b = dice_.unit(what, knot + 1);
  double smooth = part * part * (3 - 2 * part);
  return 2 * (a + (b - a) * smooth) - 1;
}

Micros Market::price_micros_per_hour(const OfferParts& place, std::int64_t at_us) const {
  TypePrice price{place.type->price, place.type->spot_share};
  if (const auto other = prices_.find(place.type->id); other != prices_.end()) price = other->second;
  double dollars = price.dollars * place.region->price_factor;
  if (place.spot) {
    std::int64_t step_us = at_us - at_us % (5 * minute_us);
    std::string id = offer_id(place);
    double sway = 0.10 * drift(id + " hour", step_us, hour_us) + 0.20 * drift(id + " third", step_us, 8 * hour_us) +
                  0.15 * drift(id + " day", step_us, 36 * hour_us);
    dollars *= std::min(1.0, price.spot_share * (1 + sway));
  }
  return static_cast<Micros>(dollars * 1e4 + 0.5) * 100;  // rounded to hundredths of a cent
}

bool Market::sold_out(const OfferParts& place, std::int64_t at_us) const {
  double share = std::min(0.9, place.spot ? 1.5 * scarcity_ : scarcity_);
  return dice_.chance(share, offer_id(place) + " stock", static_cast<std::uint64_t>(at_us / (20 * minute_us)));
}

}  // namespace rille::provider::sim
