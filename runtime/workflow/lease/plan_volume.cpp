// Plans a volume: chooses the provider's offer for it. The rest is as for a machine (acquire.cpp).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "runtime/workflow/lease/refused.hpp"
#include "runtime/workflow/lease/volumes.hpp"

namespace rille::lease {

namespace {

Result<provider::VolumeKind> kind_of(const provider::Provider& from, const provider::VolumeSeller& seller,
                                     const std::string& named) {
  const std::vector<provider::VolumeKind>& kinds = seller.volume_kinds();
  std::vector<std::string> names;
  for (const provider::VolumeKind& kind : kinds) {
    if (named.empty() || kind.name == named) return kind;
    names.push_back(kind.name);
  }
  return make_error(ErrorKind::invalid, fmt::format("{} has no volumes of kind '{}'", from.name(), named),
                    fmt::format("kinds: {}", fmt::join(names, ", ")));
}

// The cheapest offer that has not refused. Error invalid: several regions, of which none is named.
Result<const provider::Offer*> cheapest_of(const std::vector<provider::Offer>& offers, const Terms& terms,
                                           const provider::VolumeWish& wish, const std::string& name) {
  std::set<std::string> regions;
  for (const provider::Offer& o : offers) regions.insert(o.region);
  if (wish.region.empty() && regions.size() > 1)
    return make_error(ErrorKind::invalid, fmt::format("volume '{}': in which region?", name),
                      fmt::format("machines can use it only there: region = one of {}", fmt::join(regions, ", ")));
  const provider::Offer* best = nullptr;
  const auto price = [&](const provider::Offer& o) {
    const Micros known = terms.disk_of(o, 0);
    return std::pair(known < 0, known);
  };
  for (const provider::Offer& o : offers)
    if (!best || price(o) < price(*best)) best = &o;
  return best;
}

}  // namespace

// Without a name: the only provider of this home that has volumes.
Result<provider::Provider*> Manager::provider_of_volume(const std::string& named) const {
  if (!named.empty()) return registry_.find(named);
  std::vector<provider::Provider*> with;
  std::vector<std::string> names;
  for (provider::Provider* p : registry_.all())
    if (provider::seller_of_volumes(p)) with.push_back(p), names.push_back(p->name());
  if (with.size() == 1) return with.front();
  return make_error(
      ErrorKind::invalid, "volume: of which provider?",
      names.empty() ? provider::has_no_volumes("").hint : fmt::format("provider = one of {}", fmt::join(names, ", ")));
}

Async<> Manager::plan_volume(Renting& renting) {
  const Acquire& request = renting.request;
  RILLE_CO_TRY(VolumeTerms asked, read_volume_terms(request.options));
  if (asked.wish.size_bytes == 0)
    co_return make_error(ErrorKind::invalid,
                         fmt::format("volume '{}': there is no such volume, and no size is given", request.name),
                         "size = \"200GB\" makes it; `rille volume ls` lists those that there are");
  RILLE_CO_TRY(provider::Provider * provider, provider_of_volume(asked.provider));
  provider::VolumeSeller* const seller = provider::seller_of_volumes(provider);
  if (!seller) co_return provider::has_no_volumes(provider->name());
  RILLE_CO_TRY(const provider::VolumeKind kind, kind_of(*provider, *seller, asked.wish.kind));
  asked.wish.kind = kind.name;
  const Value no_options{Value::Object{}};
  RILLE_CO_TRY(Terms terms, queries_.terms_of(no_options));
  terms.ttl_ms = volume_ttl_ms;
  terms.min_ttl_ms = volume_reserve_ms;
  terms.disk_bytes = asked.wish.size_bytes;
  provider::tell_volume(terms.extra, {kind.name, kind.shared, asked.keep});
  RILLE_CO_TRY(std::vector<provider::Offer> offers, co_await seller->volume_offers(asked.wish, renting.token));
  std::erase_if(offers, [&](const provider::Offer& o) { return renting.refused.covers(o); });
  if (offers.empty())
    co_return make_error(ErrorKind::capacity,
                         fmt::format("{} has no volume of kind '{}'{}{}", provider->name(), kind.name,
                                     asked.wish.region.empty() ? "" : " in " + asked.wish.region,
                                     renting.refused.any() ? " that it would give" : ""),
                         "name another region or kind");
  RILLE_CO_TRY(const provider::Offer* const offer, cheapest_of(offers, terms, asked.wish, request.name));
  const Wish wish = std::make_shared<const Terms>(std::move(terms));
  std::vector<provider::Mount> none;
  co_return co_await commit_plan(renting, wish, *offer, std::move(none));
}

}  // namespace rille::lease
