// Offers for `rille offers` and `rille estimate`: from the cache of the providers' answers, else from the providers.
#include <fmt/format.h>

#include <algorithm>

#include "bindings/cli/offers.hpp"
#include "runtime/core/base/places.hpp"
#include "runtime/workflow/lease/ask.hpp"
#include "runtime/workflow/provider/catalogue/rank.hpp"
#include "runtime/workflow/provider/local/local.hpp"
#include "runtime/workflow/provider/providers.hpp"

namespace rille::cli {

namespace {

using provider::Offer;
using provider::OfferQuery;
using provider::OfferSource;

Error in_region(const provider::AskedRegion& region) {
  Error out = *region.problem;
  if (region.region.empty()) return out;
  out.message = fmt::format("region {}: {}", region.region, out.message);
  return out;
}

// Queries the providers in `names`, caches the answers, and adds the matching offers to `out`.
Result<> ask(App& app, const OfferQuery& query, const std::vector<OfferSource>& sources, std::vector<std::string> names,
             OfferLimits limits, provider::OfferCache& cache, FoundOffers& out) {
  RILLE_CHECK(open_engine(app));
  lease::Patience patience;
  patience.timeout_ms = limits.timeout_ms;
  patience.named = !query.providers.empty();
  patience.others_have_some = out.matching > 0;  // whether the cache has offers that match
  OfferQuery asked = provider::to_be_kept(query);
  asked.providers = std::move(names);
  RILLE_TRY(auto answers,
            run_blocking(*app.loop, lease::ask_providers(*app.loop, app.engine->providers(), asked, patience, {})));
  std::vector<provider::OfferCache::Answer> kept;
  for (auto& answer : answers) {
    std::vector<provider::AskedRegion> unasked = std::move(answer.left_out.unasked);
    if (!answer.offers) {
      unasked.push_back({"", answer.offers.error()});
      answer.offers = std::vector<Offer>();
    }
    for (const Offer& o : *answer.offers)
      if (o.matches(query)) out.offers.push_back(o), ++out.matching;
    if (answer.left_out.unpriced) out.unpriced[answer.provider] = answer.left_out.unpriced;
    for (const provider::AskedRegion& region : unasked) out.errors.push_back({answer.provider, in_region(region)});
    const auto source = std::find_if(sources.begin(), sources.end(),
                                     [&](const OfferSource& s) { return s.provider == answer.provider; });
    if (source != sources.end())
      kept.push_back({*source, std::move(*answer.offers), answer.left_out.unpriced, std::move(unasked)});
  }
  if (kept.empty()) return {};
  if (Result<> stored = cache.store(kept, query, app.loop->clock().wall_us()); !stored)
    app.terminal.note("these prices are not kept: " + stored.error().message);
  return {};
}

}  // namespace

Result<FoundOffers> collect_offers(App& app, const OfferQuery& query, const provider::OfferSettings& settings,
                                   OfferLimits limits, std::size_t limit) {
  FoundOffers out;
  provider::OfferCache cache(app.home);
  const std::int64_t now_us = app.loop->clock().wall_us();
  std::vector<std::size_t> parts;
  std::vector<std::string> missing;
  // a name without settings is kept: the provider registry later reports it
  for (const std::string& name : query.providers) {
    const auto is_it = [&name](const OfferSource& s) { return s.provider == name; };
    if (name != "local" && std::none_of(settings.sources.begin(), settings.sources.end(), is_it))
      missing.push_back(name);
  }
  for (const OfferSource& source : settings.sources) {
    if (!query.accepts_provider(source.provider)) continue;
    const auto part = cache.fresh(source, query, now_us, limits.max_age_us);
    if (!part) {
      missing.push_back(source.provider);
      continue;
    }
    parts.push_back(*part);
    out.told_us[source.provider] = cache.part(*part).time_us;
    if (const std::int64_t n = cache.part(*part).unpriced) out.unpriced[source.provider] = n;
    for (const provider::AskedRegion& region : cache.unasked(*part))
      out.errors.push_back({source.provider, in_region(region), cache.part(*part).time_us});
  }
  provider::Catalogue::Found found = cache.find(parts, query, limit);
  out.offers = std::move(found.offers);
  out.matching = found.matching;
  if (!missing.empty()) RILLE_CHECK(ask(app, query, settings.sources, std::move(missing), limits, cache, out));
  if (query.accepts_provider("local")) {
    const auto local = provider::make_local_provider(*app.loop, {app.home});
    RILLE_TRY(std::vector<Offer> own, run_blocking(*app.loop, local->offers(query, {})));
    out.matching += own.size();
    out.offers.insert(out.offers.end(), own.begin(), own.end());
  }
  provider::sort_by_rank(out.offers, query);
  if (limit > 0 && out.offers.size() > limit) out.offers.resize(limit);
  return out;
}

Result<provider::OfferSettings> offer_settings(App& app) {
  Result<provider::OfferSettings> settings = provider::read_offer_settings(providers_file());
  if (settings) return settings;
  Result<> opened = open_engine(app);
  return opened ? settings.error() : opened.error();
}

Value offers_value(const FoundOffers& listed, const OfferQuery& query, std::int64_t now_us) {
  Value::Array all;
  for (const Offer& o : listed.offers) {
    Value v = ranked_view(o, query);
    if (const auto told = listed.told_us.find(o.provider); told != listed.told_us.end())
      v.set("age_seconds", (now_us - told->second) / 1'000'000);
    all.push_back(std::move(v));
  }
  for (const auto& [name, error, told_us] : listed.errors) {
    all.push_back(Value().set("provider", name).set("error", error.message));
    all.back().set("kind", to_string(error.kind)).set("hint", error.hint);
    if (told_us) all.back().set("age_seconds", (now_us - told_us) / 1'000'000);
  }
  for (const auto& [name, types] : listed.unpriced)
    all.push_back(Value().set("provider", name).set("unpriced", types).set("note", provider::unpriced_note(types)));
  Value out(std::move(all));
  listed.workload.mark(out);
  return out;
}

}  // namespace rille::cli
