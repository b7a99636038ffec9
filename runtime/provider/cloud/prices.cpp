#include "runtime/provider/cloud/prices.hpp"

#include <algorithm>
#include <optional>

#include "runtime/loop/together.hpp"

namespace rille::provider::cloud {

namespace {
constexpr std::int64_t lasts_us = 24LL * 3'600'000'000, spot_lasts_us = 5LL * 60'000'000, patience_ms = 30'000;
}

std::vector<Offer> smallest_fitting(const std::vector<Offer>& types, OfferQuery query, std::size_t most) {
  query.max_price_micros_per_hour.reset();
  query.region.clear();  // types do not name the region that they were asked of
  std::vector<Offer> out;
  std::copy_if(types.begin(), types.end(), std::back_inserter(out), [&](const Offer& o) { return o.matches(query); });
  std::stable_sort(out.begin(), out.end(), [](const Offer& a, const Offer& b) {
    const auto size = [](const Offer& o) { return std::pair(o.gpu_count * o.gpu_memory_bytes, o.vcpus); };
    return size(a) < size(b);
  });
  if (out.size() > most) out.resize(most);
  return out;
}

Async<std::vector<Offer>> PriceBook::priced(std::vector<Offer> offers, bool spot, CancelToken token) {
  const std::int64_t now_us = loop_.clock().wall_us();
  std::vector<Together<Price>> asked;
  std::vector<std::string> types;
  for (const Offer& offer : offers) {
    const auto at = known_.find({offer.id, spot});
    if (at != known_.end() && now_us - at->second.at_us < (spot ? spot_lasts_us : lasts_us)) continue;
    types.push_back(offer.id);
    asked.push_back({"the price of " + offer.id, [this, type = offer.id, spot](CancelToken t) {
                       return ask_(type, spot, t);
                     }});
  }
  const auto answers = co_await together(loop_, std::move(asked), patience_ms, token);
  std::optional<Error> failure;
  for (std::size_t i = 0; i < types.size(); ++i) {
    known_.erase({types[i], spot});
    if (answers[i]) known_[{types[i], spot}] = {now_us, *answers[i]};
    else failure = answers[i].error();
  }
  std::vector<Offer> out;
  for (Offer& offer : offers) {
    const auto at = known_.find({offer.id, spot});
    if (at == known_.end()) continue;
    offer.price_micros_per_hour = at->second.price.micros_per_hour;
    offer.currency = at->second.price.currency;
    out.push_back(std::move(offer));
  }
  if (out.empty() && failure) co_return *failure;
  co_return out;
}

}  // namespace rille::provider::cloud
