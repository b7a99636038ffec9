#include "runtime/workflow/provider/catalogue/cache.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/core/base/id.hpp"
#include "runtime/core/base/text.hpp"
#include "runtime/core/net/credentials/chain.hpp"
#include "runtime/core/store/file.hpp"
#include "runtime/core/store/settings.hpp"
#include "runtime/workflow/provider/manner.hpp"

namespace rille::provider {

namespace {

constexpr std::int64_t kept_us = 24LL * 3'600'000'000;
constexpr std::size_t parts_max = 64, kept_rows_max = 1'000'000;

// A hash of HOME and of the environment variables that the provider depends on; the values are not stored.
std::string environment_of(const std::string& provider) {
  std::string chain = derive_hex({net::environment("HOME")}, 64);
  for (const char* name : manner_of(provider).variables) chain = derive_hex({chain, name, net::environment(name)}, 64);
  return chain;
}

Value scope_value(const OfferQuery& q) {
  Value out = Value::Object{};
  if (lower_case(q.gpu) != "any") out.set("gpu", lower_case(q.gpu));
  if (q.runnable) out.set("runnable", true);
  if (q.count > 0) out.set("count", q.count);
  if (!q.gpus.empty()) {
    std::vector<std::string> sorted;
    for (const GpuWish& one : q.gpus) sorted.push_back(fmt::format("{}:{}", lower_case(one.model), one.count));
    std::sort(sorted.begin(), sorted.end());
    out.set("gpus", Value::Array(sorted.begin(), sorted.end()));
  }
  if (q.gpu_memory_bytes > 0) out.set("gpu_memory", q.gpu_memory_bytes);
  if (!q.gpu_vendor.empty()) out.set("gpu_vendor", q.gpu_vendor);
  if (!q.disk_kind.empty()) out.set("disk_kind", q.disk_kind);
  if (q.spot) out.set("spot", true);
  if (!q.region.empty()) out.set("region", q.region);
  if (!q.regions.empty()) {
    std::vector<std::string> sorted = q.regions;
    std::sort(sorted.begin(), sorted.end());
    out.set("regions", Value::Array(sorted.begin(), sorted.end()));
  }
  if (q.vcpus > 0) out.set("vcpus", q.vcpus);
  if (q.memory_bytes > 0) out.set("memory", q.memory_bytes);
  if (!q.interconnect.empty()) out.set("interconnect", q.interconnect);
  if (q.network_gbps > 0) out.set("network_gbps", q.network_gbps);
  return out;
}

// Whether an answer may be cached. That a region was unreachable may be cached for Manner::silence_ms; any other error
// must disappear as soon as its cause is gone, so it is not cached.
bool is_kept(const OfferCache::Answer& a) {
  if (a.unasked.empty()) return true;
  if (manner_of(a.source.provider).silence_ms <= 0) return false;
  return std::all_of(a.unasked.begin(), a.unasked.end(), [](const AskedRegion& one) {
    return one.problem && (one.problem->kind == ErrorKind::network || one.problem->kind == ErrorKind::timeout);
  });
}

std::string to_text(const std::vector<AskedRegion>& unasked) {
  if (unasked.empty()) return "";
  Value::Array out;
  for (const AskedRegion& one : unasked)
    out.push_back(Value().set("region", one.region).set("error", error_to_value(*one.problem)));
  return Value(std::move(out)).to_json();
}

}  // namespace

Result<OfferSettings> read_offer_settings(const std::string& settings_file) {
  OfferSettings out;
  RILLE_TRY(const Value settings, store::read_settings(settings_file));
  for (const auto& [name, part] : *settings.as_object()) {
    if (name == "rates") {
      RILLE_TRY(out.rates, read_rates(part));
    } else if (name == "disk_price") {
      RILLE_TRY(out.disk_prices, read_disk_prices(part));
    } else if (name != "local" && name != "address_price") {  // make_providers reads these two fields
      out.sources.push_back({name, derive_hex({"settings", name, part.to_json(), environment_of(name)}, 16)});
    }
  }
  return out;
}

std::string scope_of(const OfferQuery& query) { return scope_value(query).to_json(); }

OfferQuery to_be_kept(OfferQuery query) {
  query.max_price_micros_per_hour.reset();
  query.compliance.clear();
  query.providers.clear();
  query.rates.clear();
  query.rank = Rank::price;
  query.tokens_per_second.clear();
  return query;
}

bool covers(const std::string& provider, const std::string& scope, const OfferQuery& query) {
  const Value asked = scope_value(query);
  if (scope == asked.to_json()) return true;
  if (manner_of(provider).narrow) return false;
  const Result<Value> had = Value::from_json(scope);
  if (!had || !had->as_object() || had->boolean("spot") != query.spot) return false;
  // Every restriction that the cached answer was made with must also be in the query.
  const auto wanted = [&](const auto& field) { return asked[field.first] == field.second; };
  return std::all_of(had->as_object()->begin(), had->as_object()->end(), wanted);
}

OfferCache::OfferCache(std::string home) : path_(home + "/cache/offers") {
  if (Result<Catalogue> found = Catalogue::open(path_)) catalogue_ = std::move(*found);
}

std::optional<std::size_t> OfferCache::fresh(const OfferSource& source, const OfferQuery& query, std::int64_t now_us,
                                             std::int64_t max_age_us) const {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; catalogue_ && i < catalogue_->parts().size(); ++i) {
    const CataloguePart& p = part(i);
    const std::int64_t age_us = now_us - p.time_us;  // negative if the clock was set back
    if (p.provider != source.provider || p.settings != source.settings || age_us < 0 || age_us > max_age_us) continue;
    if (!p.unasked.empty() && age_us > manner_of(p.provider).silence_ms * 1000) continue;
    if ((!best || p.time_us > part(*best).time_us) && covers(p.provider, p.scope, query)) best = i;
  }
  return best;
}

std::vector<AskedRegion> OfferCache::unasked(std::size_t n) const {
  std::vector<AskedRegion> out;
  const Result<Value> list = Value::from_json(part(n).unasked);
  if (!list || !list->as_array()) return out;
  for (const Value& one : *list->as_array()) out.push_back({one.text("region"), error_from_value(one["error"])});
  return out;
}

Catalogue::Found OfferCache::find(std::span<const std::size_t> parts, const OfferQuery& query,
                                  std::size_t limit) const {
  return catalogue_ ? catalogue_->find(parts, query, limit) : Catalogue::Found();
}

Result<> OfferCache::store(std::vector<Answer> answers, const OfferQuery& query, std::int64_t now_us) {
  std::erase_if(answers, [](const Answer& a) { return !is_kept(a); });
  if (answers.empty()) return {};
  if (Result<Catalogue> newer = Catalogue::open(path_))
    catalogue_ = std::move(*newer);  // another process may have written a newer file
  const OfferQuery asked = to_be_kept(query);
  CatalogueWriter writer;
  std::size_t parts = 0, rows = 0;
  for (const Answer& a : answers) {
    if (rows + a.offers.size() > kept_rows_max || parts >= parts_max) continue;
    CataloguePart part{a.source.provider, scope_of(asked), a.source.settings, now_us};
    part.unpriced = a.unpriced;
    part.unasked = to_text(a.unasked);
    // An answer that exceeds the writer's limits is not cached; the other answers are stored.
    if (writer.add(std::move(part), a.offers)) rows += a.offers.size(), ++parts;
  }
  std::vector<const CataloguePart*> old;
  for (std::size_t i = 0; catalogue_ && i < catalogue_->parts().size(); ++i) old.push_back(&part(i));
  std::stable_sort(old.begin(), old.end(), [](const auto* a, const auto* b) { return a->time_us > b->time_us; });
  for (const CataloguePart* p : old) {
    const auto replaced = [&](const Answer& a) {
      return a.source.provider == p->provider && (a.source.settings != p->settings || p->scope == scope_of(asked));
    };
    const bool over = now_us - p->time_us > kept_us || now_us < p->time_us;
    if (over || std::any_of(answers.begin(), answers.end(), replaced)) continue;
    if (rows + p->count > kept_rows_max || parts >= parts_max) continue;
    if (writer.add(*p, catalogue_->offers(*p))) rows += p->count, ++parts;
  }
  RILLE_CHECK(store::make_directories(store::parent_path(path_)));
  RILLE_CHECK(store::write_file_atomic(path_, writer.finish(), 0600));
  RILLE_TRY(catalogue_, Catalogue::open(path_));
  return {};
}

}  // namespace rille::provider
