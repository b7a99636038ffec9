// What to change where `rille offers` has found nothing: as `rille rent` says it, in the words of the command line.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "bindings/cli/offers.hpp"
#include "runtime/base/units.hpp"
#include "runtime/provider/gpus.hpp"
#include "runtime/provider/region_hint.hpp"

namespace rille::cli {

namespace {

using provider::Offer;
using provider::OfferQuery;

std::string too_cheap(const OfferQuery& query, const Offer& cheapest) {
  const Micros dollars = cheapest.dollars(query.rates);
  if (dollars >= 0)
    return fmt::format("the cheapest that fits is {} at {} an hour: raise --max-price", cheapest.id,
                       format_dollars(dollars));
  if (cheapest.price_micros_per_hour < 0)
    return fmt::format("{} would fit, but its price is not known: leave --max-price out", cheapest.id);
  return fmt::format("{} would fit, but its price is in {}: --rate {}=DOLLARS says what that is", cheapest.id,
                     cheapest.currency, cheapest.currency);
}

}  // namespace

std::string gpu_hint(const OfferQuery& query) {
  if (query.gpu == "any" || query.gpu == "cpu") return "";
  const std::string near = provider::nearest_gpu(query.gpu);
  return near.empty() ? "" : fmt::format("did you mean --gpu {}?", near);
}

OfferQuery anywhere_at_any_price(OfferQuery query) {
  query.max_price_micros_per_hour.reset();
  query.region.clear();
  query.regions.clear();
  return query;
}

std::string nearest_hint(const OfferQuery& query, const std::vector<Offer>& others) {
  std::vector<std::string> regions;
  const Offer* cheapest = nullptr;  // where it was asked for
  const auto price = [&query](const Offer& o) { return static_cast<std::uint64_t>(o.dollars(query.rates)); };
  for (const Offer& o : others) {
    if (std::find(regions.begin(), regions.end(), o.region) == regions.end()) regions.push_back(o.region);
    if (query.accepts_region(o.region) && (!cheapest || price(o) < price(*cheapest))) cheapest = &o;
  }
  if (regions.empty()) return "";
  if (cheapest) return too_cheap(query, *cheapest);
  return provider::region_hint(query.regions.empty() ? query.region : query.regions.front(), regions, "--region {}");
}

}  // namespace rille::cli
