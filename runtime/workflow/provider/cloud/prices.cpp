#include "runtime/workflow/provider/cloud/prices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>

namespace rille::provider::cloud {

namespace {
constexpr std::int64_t lasts_us = 24LL * 3'600'000'000, spot_lasts_us = 5LL * 60'000'000, price_patience_ms = 30'000;
}

std::string price_text(Micros micros) {
  return fmt::format("{}.{:03}", (micros + 999) / 1'000'000, (micros + 999) / 1'000 % 1'000);
}

std::vector<Offer> smallest_fitting(const std::vector<Offer>& types, OfferQuery query, std::size_t most) {
  query.max_price_micros_per_hour.reset();
  query.region.clear();                                // `types` have no region yet
  using Model = std::pair<std::string, std::int64_t>;  // GPU name and memory of one GPU in bytes
  std::map<Model, std::map<int, std::vector<Offer>>> models;
  for (const Offer& o : types)
    if (o.matches(query)) models[{o.gpu, o.gpu_memory_bytes}][o.gpu_count].push_back(o);
  struct Group {
    std::size_t nth = 0;  // how many smaller GPU counts this model has
    const std::vector<Offer>* offers = nullptr;
  };
  std::vector<Group> groups;
  for (auto& [model, by_count] : models) {
    std::size_t nth = 0;
    for (auto& [count, offers] : by_count) {
      std::stable_sort(offers.begin(), offers.end(), [](const Offer& a, const Offer& b) {
        return std::pair(a.vcpus, a.memory_bytes) < std::pair(b.vcpus, b.memory_bytes);
      });
      groups.push_back({nth++, &offers});
    }
  }
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    const auto place = [](const Group& g) {
      const Offer& o = g.offers->front();
      return std::tuple(g.nth, o.gpu_count == 0, o.gpu_count * o.gpu_memory_bytes);
    };
    return place(a) < place(b);
  });
  std::vector<Offer> out;
  if (query.left_out) {
    std::size_t fitting = 0;
    for (const Group& g : groups) fitting += g.offers->size();
    if (fitting > most) query.left_out->unpriced += static_cast<std::int64_t>(fitting - most);
  }
  bool more = true;
  for (std::size_t round = 0; more; ++round) {
    more = false;
    for (const Group& g : groups) {
      if (round >= g.offers->size() || out.size() >= most) continue;
      out.push_back((*g.offers)[round]);
      more = true;
    }
  }
  return out;
}

Async<std::vector<Offer>> PriceBook::priced(std::vector<Offer> offers, OfferQuery query, std::string region,
                                            CancelToken token) {
  const bool spot = query.spot;
  const std::int64_t now_us = loop_.clock().wall_us();
  std::vector<Together<Price>> asked;
  std::vector<std::string> types;
  for (const Offer& offer : offers) {
    const auto at = known_.find({offer.id, spot});
    if (at != known_.end() && now_us - at->second.at_us < (spot ? spot_lasts_us : lasts_us)) continue;
    types.push_back(offer.id);
    asked.push_back(
        {"the price of " + offer.id, [this, type = offer.id, spot](CancelToken t) { return ask_(type, spot, t); }});
  }
  const auto answers = co_await in_batches(loop_, std::move(asked), price_patience_ms, token);
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
    offer.reserved_1y_micros_per_hour = at->second.price.reserved_1y;
    offer.reserved_3y_micros_per_hour = at->second.price.reserved_3y;
    out.push_back(std::move(offer));
  }
  if (!failure) co_return out;
  if (out.empty() || token.cancelled()) co_return *failure;  // a partial list would look complete
  failure->message =
      fmt::format("what {} of its types cost is not known: {}", offers.size() - out.size(), failure->message);
  if (query.left_out) query.left_out->unasked.push_back({std::move(region), std::move(*failure)});
  co_return out;
}

}  // namespace rille::provider::cloud
