#include "runtime/workflow/provider/nearest.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/core/base/units.hpp"
#include "runtime/workflow/provider/gpus.hpp"

namespace rille::provider {

namespace {

using Offers = std::vector<const Offer*>;

// The option's name as the caller writes it; on the command line max_price is --max-price.
std::string option(std::string name, Asker asker) {
  if (asker != Asker::command) return name;
  std::replace(name.begin(), name.end(), '_', '-');
  return "--" + name;
}

std::string option(const std::string& name, const std::string& value, Asker asker) {
  const char* quote = value.find(' ') == value.npos ? "" : "'";
  return asker == Asker::command ? fmt::format("{} {}{}{}", option(name, asker), quote, value, quote)
                                 : fmt::format("{} = \"{}\"", name, value);
}

// A condition of a query other than the GPU model.
struct Wish {
  const char* name;
  bool (*asked)(const OfferQuery& query);
  void (*drop)(OfferQuery& query);
  std::string (*advice)(const OfferQuery& query, const Offers& without,
                        Asker asker);  // `without`: offers that match except for this condition
};

std::string price_advice(const OfferQuery& query, const Offers& without, Asker asker) {
  const auto price = [&query](const Offer* o) { return static_cast<std::uint64_t>(o->dollars(query.rates)); };
  const Offer& cheapest = **std::min_element(without.begin(), without.end(), [&](const Offer* a, const Offer* b) {
    return price(a) < price(b);  // an unknown price sorts last
  });
  const std::string cap = option("max_price", asker);
  if (const Micros dollars = cheapest.dollars(query.rates); dollars >= 0)
    return fmt::format("the cheapest that fits is {} at {} an hour: raise {}", cheapest.id, format_dollars(dollars),
                       cap);
  const bool unknown = cheapest.price_micros_per_hour < 0;
  if (unknown && asker == Asker::rent)
    return fmt::format(
        "{} would fit, but its price is not known: leave max_price out, and say price = dollars per "
        "hour",
        cheapest.id);
  if (unknown) return fmt::format("{} would fit, but its price is not known: leave {} out", cheapest.id, cap);
  const auto& currency = cheapest.currency;
  return fmt::format("{} would fit, but {} is in dollars and its price in {}: {} gives the exchange rate", cheapest.id,
                     cap, currency,
                     asker == Asker::command ? fmt::format("--rate {}=DOLLARS", currency)
                                             : fmt::format("rates = {{ {} = DOLLARS }}", currency));
}

// The requested region may exist without being configured, so the hint always mentions the settings.
std::string region_advice(const OfferQuery& query, const Offers& without, Asker asker) {
  std::vector<std::string> regions;
  for (const Offer* o : without)
    if (std::find(regions.begin(), regions.end(), o->region) == regions.end()) regions.push_back(o->region);
  const std::string near = did_you_mean(query.regions.empty() ? query.region : query.regions.front(), regions);
  const std::string what = near.empty() ? fmt::format("there is some in: {}. ", fmt::join(regions, ", "))
                                        : fmt::format("did you mean {}? ", option("region", near, asker));
  return what + "A cloud is asked only in the `regions` of its settings";
}

bool has_count(const OfferQuery& query) {
  return std::any_of(query.gpus.begin(), query.gpus.end(), [](const GpuWish& one) { return one.count > 0; });
}

std::string count_advice(const OfferQuery& query, const Offers& without, Asker asker) {
  std::set<int> counts;
  for (const Offer* o : without) counts.insert(o->gpu_count);
  counts.erase(0);
  if (counts.empty()) return fmt::format("leave {} out: these machines have no GPU", option("count", asker));
  const std::string model = query.gpus.empty() ? query.gpu : without.front()->gpu;
  if (!query.gpus.empty())
    return fmt::format("{} has {} of them here: {}", without.front()->id, without.front()->gpu_count,
                       option("gpu", fmt::format("{}:{}", model, without.front()->gpu_count), asker));
  const auto last = std::prev(counts.end());
  const std::string before = fmt::format("{}", fmt::join(counts.begin(), last, ", "));
  return fmt::format("a machine has {}{}{} of them here: {}; for more, rent several", before,
                     before.empty() ? "" : " or ", *last, option("gpu", fmt::format("{}:{}", model, *last), asker));
}

// The size in GB as GPUs are sold: 80 GiB is an "80 GB" GPU.
std::int64_t as_sold_gb(std::int64_t bytes) {
  constexpr std::int64_t gib = std::int64_t{1} << 30;
  return (bytes + gib / 2) / gib;
}

std::string gpu_memory_advice(const OfferQuery& query, const Offers& without, Asker asker) {
  std::set<std::int64_t> sizes;
  for (const Offer* o : without)
    if (o->gpu_memory_bytes > 0) sizes.insert(as_sold_gb(o->gpu_memory_bytes));
  const std::string model = gpu_without_memory(query.gpu);
  if (sizes.empty()) return fmt::format("there is {}", option("gpu", model, asker));
  return fmt::format("{} here has {} GB: {}", model, fmt::join(sizes, " or "), option("gpu", model, asker));
}

template <class Number>
std::string most(const char* name, const Offers& without, Asker asker, Number Offer::*field, const char* unit = "") {
  Number top{};
  for (const Offer* o : without) top = std::max(top, o->*field);
  return fmt::format("the most that fits the rest is {}{}: lower {}", top, unit, option(name, asker));
}

const Wish wishes[] = {
    {"max_price", [](const OfferQuery& q) { return q.max_price_micros_per_hour.has_value(); },
     [](OfferQuery& q) { q.max_price_micros_per_hour.reset(); }, price_advice},
    {"region", [](const OfferQuery& q) { return !q.region.empty() || !q.regions.empty(); },
     [](OfferQuery& q) { q.region.clear(), q.regions.clear(); }, region_advice},
    {"count", [](const OfferQuery& q) { return q.count > 0 || (!q.gpus.empty() && has_count(q)); },
     [](OfferQuery& q) {
       q.count = 0;
       for (GpuWish& one : q.gpus) one.count = 0;
     },
     count_advice},
    {"gpu_memory", [](const OfferQuery& q) { return q.gpu_memory_bytes > 0; },
     [](OfferQuery& q) { q.gpu_memory_bytes = 0; },
     [](const OfferQuery&, const Offers& without, Asker asker) {
       std::int64_t top = 0;
       for (const Offer* o : without) top = std::max(top, o->gpu_memory_bytes);
       if (top == 0) return fmt::format("leave {} out: these machines have no GPU", option("gpu_memory", asker));
       return fmt::format("the most that a GPU has here is {} GB: lower {}", as_sold_gb(top),
                          option("gpu_memory", asker));
     }},
    {"gpu_vendor", [](const OfferQuery& q) { return !q.gpu_vendor.empty(); },
     [](OfferQuery& q) { q.gpu_vendor.clear(); },
     [](const OfferQuery& q, const Offers& without, Asker asker) {
       return fmt::format("{} fits but for {}", without.front()->id, option("gpu_vendor", q.gpu_vendor, asker));
     }},
    {"disk_kind", [](const OfferQuery& q) { return !q.disk_kind.empty(); }, [](OfferQuery& q) { q.disk_kind.clear(); },
     [](const OfferQuery& q, const Offers& without, Asker asker) {
       return fmt::format("{} fits but for {}", without.front()->id, option("disk_kind", q.disk_kind, asker));
     }},
    {"the GPU's memory", [](const OfferQuery& q) { return gpu_without_memory(q.gpu) != q.gpu; },
     [](OfferQuery& q) { q.gpu = gpu_without_memory(q.gpu); }, gpu_memory_advice},
    {"vcpus", [](const OfferQuery& q) { return q.vcpus > 0; }, [](OfferQuery& q) { q.vcpus = 0; },
     [](const OfferQuery&, const Offers& o, Asker asker) { return most("vcpus", o, asker, &Offer::vcpus); }},
    {"memory", [](const OfferQuery& q) { return q.memory_bytes > 0; }, [](OfferQuery& q) { q.memory_bytes = 0; },
     [](const OfferQuery&, const Offers& without, Asker asker) {
       std::int64_t top = 0;
       for (const Offer* o : without) top = std::max(top, o->memory_bytes);
       return fmt::format("the most that fits the rest is {}: lower {}", format_size_bytes(top),
                          option("memory", asker));
     }},
    {"interconnect", [](const OfferQuery& q) { return !q.interconnect.empty(); },
     [](OfferQuery& q) { q.interconnect.clear(); },
     [](const OfferQuery& q, const Offers& without, Asker asker) {
       return fmt::format("{} fits but for {}", without.front()->id, option("interconnect", q.interconnect, asker));
     }},
    {"compliance", [](const OfferQuery& q) { return !q.compliance.empty(); },
     [](OfferQuery& q) { q.compliance.clear(); },
     [](const OfferQuery& q, const Offers& without, Asker asker) {
       return fmt::format("{} in {} fits but for {}", without.front()->id, without.front()->region,
                          option("compliance", fmt::format("{}", fmt::join(q.compliance, ",")), asker));
     }},
    {"network_gbps", [](const OfferQuery& q) { return q.network_gbps > 0; }, [](OfferQuery& q) { q.network_gbps = 0; },
     [](const OfferQuery&, const Offers& without, Asker asker) {
       return fmt::format("{} fits but for {}", without.front()->id, option("network_gbps", asker));
     }},
};

}  // namespace

std::optional<OfferQuery> loosened(OfferQuery query) {
  bool any = false;
  for (const Wish& wish : wishes) {
    if (!wish.asked(query)) continue;
    wish.drop(query);
    any = true;
  }
  if (!any) return std::nullopt;
  return query;
}

std::string gpu_hint(const OfferQuery& query, Asker asker) {
  for (const GpuWish& one : query.gpus) {  // suggests a name for the first unknown model
    OfferQuery alone;
    alone.gpu = one.model;
    if (std::string meant = gpu_hint(alone, asker); !meant.empty()) return meant;
  }
  if (query.gpu == "any" || query.gpu == "cpu") return "";
  if (const std::size_t comma = query.gpu.find(','); comma != query.gpu.npos) {
    std::string quoted = "\"" + query.gpu.substr(0, comma) + "\"";
    for (std::size_t at = comma; at != query.gpu.npos;) {
      const std::size_t from = query.gpu.find_first_not_of(", ", at), end = query.gpu.find(',', at + 1);
      if (from != query.gpu.npos)
        quoted += ", \"" + query.gpu.substr(from, end == query.gpu.npos ? end : end - from) + "\"";
      at = end;
    }
    return fmt::format("several models are a list: gpu = {{ {} }}", quoted);
  }
  const std::string near = nearest_gpu(query.gpu);
  if (!near.empty()) return fmt::format("did you mean {}?", option("gpu", near, asker));
  if (is_known_gpu(query.gpu)) return "";
  return fmt::format(
      "no provider here has a GPU called '{}': `rille offers` lists the available ones. A name is a model, "
      "with or without its memory: A100, A100-80GB, H100, L4, RTX 4090",
      query.gpu);
}

std::string nearest_hint(const OfferQuery& query, const std::vector<Offer>& others, Asker asker) {
  if (std::string meant = gpu_hint(query, asker); !meant.empty()) return meant;
  std::vector<std::string> asked;
  for (const Wish& wish : wishes) {
    if (!wish.asked(query)) continue;
    asked.emplace_back(wish.name);
    OfferQuery rest = query;
    wish.drop(rest);
    Offers without;
    for (const Offer& o : others)
      if (o.matches(rest)) without.push_back(&o);
    if (!without.empty()) return wish.advice(query, without, asker);
  }
  if (others.empty() && asker != Asker::rent && query.shown_gpu() != "any" && query.gpu != "cpu")
    return fmt::format("no provider that was asked has {}: `rille offers` lists the available machines",
                       option("gpu", query.shown_gpu(), asker));
  if (others.empty() || asked.size() < 2) return "";
  return fmt::format("no offer has {} together; without them there is {}", fmt::join(asked, ", "), others.front().id);
}

}  // namespace rille::provider
