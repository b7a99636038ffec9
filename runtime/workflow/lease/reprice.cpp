// Prices of running spot machines: as the provider reports them with the machine, or from the market's price history. A
// new price counts from the time of its change if that is known, otherwise from the query that found it.
#include <algorithm>

#include "runtime/workflow/lease/manager.hpp"
#include "runtime/workflow/lease/terms.hpp"
#include "runtime/workflow/provider/spot_market.hpp"

namespace rille::lease {

namespace {

// Converts a price from the offer's currency to the ledger's. If the ledger counts this lease in the offer's currency,
// the price is unchanged, even if an exchange rate is known by now; otherwise it is converted to dollars.
// price_unknown: there is no rate.
Micros counted_of(const Lease& lease, const Terms& terms, Micros price) {
  provider::Offer offer = lease.request.offer;
  if (lease.price().currency != "USD") return price;
  offer.price_micros_per_hour = price;
  return terms.price_of(offer);
}

// The highest price that was sent to the provider with the create call: the reserved price, at least the offered price.
Micros cap_of(const Lease& lease) {
  const provider::CreateRequest& r = lease.request;
  return std::max(r.cap_micros_per_hour, r.offer.price_micros_per_hour);
}

std::int64_t tenure_begun_us(const Lease& lease) {
  for (const Tenure& t : lease.tenures)
    if (t.generation == lease.generation && t.machine_id == lease.machine_id) return t.from_us;
  return 0;
}

}  // namespace

void Manager::book_price(const Lease& lease, const provider::Machine& seen) {
  const provider::Offer& offer = lease.request.offer;
  if (!offer.spot || lease.state != "live" || seen.state != provider::MachineState::live) return;
  if (seen.price_micros_per_hour < 0 ||
      (offer.currency == "USD" && seen.price_micros_per_hour == lease.price_micros_per_hour))
    return;
  const Result<Terms> terms = queries_.terms_of(lease.options);
  const Price before = lease.price();
  const Micros price = terms ? counted_of(lease, *terms, seen.price_micros_per_hour) : provider::price_unknown;
  if (price < 0 || price == before.micros) return;
  const std::vector<PriceStep> steps{{now_us(), price}};
  journal_.enqueue([of = std::make_shared<const Lease>(lease), steps,
                    in = before.currency](store::Db& db) { return record_prices(db, *of, steps, false, in); },
                   store::Fence());
}

Async<> Manager::follow_price(std::string id, std::int64_t patience_ms, store::Fence fence, CancelToken token) {
  RILLE_CO_TRY(const Shared lease, known(id));
  if (!lease || !lease->request.offer.spot || (lease->state != "live" && lease->state != "releasing"))
    co_return success();
  RILLE_CO_TRY(provider::Provider * provider, registry_.find(lease->provider));
  auto* const priced = dynamic_cast<provider::SpotPriced*>(provider);
  const std::int64_t since_us = tenure_begun_us(*lease);
  if (!priced || !priced->market().told || since_us == 0) co_return success();
  const provider::SpotMarket market = priced->market();
  const auto ask = [priced, lease, since_us](CancelToken t) {
    return priced->spot_prices(lease->request.offer, lease->machine_id, since_us, std::move(t));
  };
  const std::string what = "asking " + lease->provider + " for spot prices";
  const Result<std::vector<provider::PricePoint>> told = co_await with_deadline(loop_, patience_ms, token, what, ask);
  if (!told) co_return told.error();
  RILLE_CO_TRY(const Terms terms, queries_.terms_of(lease->options));
  std::vector<PriceStep> steps;
  for (const provider::PricePoint& point : *told) {
    const Micros cap = market.heeds_cap ? cap_of(*lease) : 0;
    const Micros paid = cap > 0 ? std::min(point.micros_per_hour, cap) : point.micros_per_hour;
    const Micros price = counted_of(*lease, terms, paid);
    if (price >= 0) steps.push_back({std::min(point.from_wall_us, now_us()), price});
  }
  if (steps.empty()) co_return success();
  store::Journal::Write write = [lease, steps, whole = market.knows_before](store::Db& db) {
    return record_prices(db, *lease, steps, whole, lease->price().currency);
  };
  co_return co_await journal_.commit(std::move(write), std::move(fence));
}

// If the provider has a price history, records the price changes that were not queried while the machine ran. Called
// when the machine is gone, so that the delay of the query costs no money.
Async<> Manager::follow_to_the_end(std::shared_ptr<const Lease> lease, store::Fence fence) {
  constexpr std::int64_t patience_ms = 5'000;
  const Result<provider::Provider*> provider = registry_.find(lease->provider);
  auto* const priced = provider ? dynamic_cast<provider::SpotPriced*>(*provider) : nullptr;
  if (!priced || !priced->market().knows_before) co_return success();
  co_return co_await follow_price(lease->id, patience_ms, std::move(fence), {});
}

}  // namespace rille::lease
