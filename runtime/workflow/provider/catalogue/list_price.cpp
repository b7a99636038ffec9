#include "runtime/workflow/provider/catalogue/list_price.hpp"

#include <algorithm>
#include <cmath>

#include "runtime/workflow/provider/catalogue/known.hpp"
#include "runtime/workflow/provider/catalogue/rank.hpp"
#include "runtime/workflow/provider/type_of.hpp"

namespace rille::provider {

namespace {

bool same_machine(const ListPrice& a, const ListPrice& b) {
  return a.provider == b.provider && a.type == b.type && a.region == b.region && a.gpu == b.gpu &&
         a.gpu_count == b.gpu_count;
}

std::int64_t memory_of(const ListPrice& row) {
  const GpuFacts* facts = known_gpu(row.gpu, 0);
  return facts ? static_cast<std::int64_t>(facts->memory_bytes) : 0;
}

std::vector<ListedMachine> all_machines() {
  std::vector<ListedMachine> out;
  for (const ListPrice& row : list_prices()) {
    if (out.empty() || !same_machine(out.back().any(), row)) out.emplace_back();
    out.back().prices[static_cast<std::size_t>(row.kind)] = &row;
  }
  return out;
}

// The machine as an offer, only to be matched by a query.
Offer as_offer(const ListedMachine& machine, PriceKind kind, const OfferQuery& query) {
  const ListPrice& row = machine.any();
  Offer out;
  out.provider = row.provider;
  out.id = row.type;
  out.gpu = row.gpu;
  out.gpu_count = row.gpu_count;
  out.gpu_memory_bytes = memory_of(row);
  out.gpu_vendor = "nvidia";
  out.region = row.region;
  // a price of all regions is one of the region that is asked for, too
  if (row.region.empty())
    out.region = !query.region.empty() ? query.region : query.regions.empty() ? "" : query.regions[0];
  out.spot = query.spot;
  out.price_micros_per_hour = machine.micros(kind);
  return out;
}

}  // namespace

std::string_view to_string(PriceKind kind) {
  constexpr std::array<std::string_view, price_kinds.size()> words = {"on_demand", "spot", "reserved_1y",
                                                                      "reserved_3y"};
  return words[static_cast<std::size_t>(kind)];
}

const ListPrice& ListedMachine::any() const {
  return **std::find_if(prices.begin(), prices.end(), [](const ListPrice* p) { return p != nullptr; });
}

Micros ListedMachine::micros(PriceKind kind) const {
  const ListPrice* row = price(kind);
  return row ? static_cast<Micros>(std::llround(row->dollars * 1e6)) : price_unknown;
}

std::string ListedMachine::dates() const {
  std::string_view first = any().date, last = first;
  for (const ListPrice* p : prices) {
    if (!p) continue;
    first = std::min(first, p->date);
    last = std::max(last, p->date);
  }
  return first == last ? std::string(first) : std::string(first) + " to " + std::string(last);
}

Value ListedMachine::view() const {
  const ListPrice& row = any();
  Value out, prices_of;
  out.set("provider", std::string(row.provider)).set("id", std::string(row.type));
  out.set("region", std::string(row.region)).set("gpu", std::string(row.gpu)).set("gpu_count", row.gpu_count);
  out.set("gpu_memory_bytes", memory_of(row)).set("gpu_vendor", "nvidia").set("currency", "USD");
  for (const auto& [kind, name] :
       {std::pair(PriceKind::on_demand, "price_per_hour"), std::pair(PriceKind::spot, "spot_price_per_hour"),
        std::pair(PriceKind::reserved_1y, "reserved_1y_price_per_hour"),
        std::pair(PriceKind::reserved_3y, "reserved_3y_price_per_hour")}) {
    const ListPrice* p = price(kind);
    if (!p) continue;
    out.set(name, p->dollars);
    prices_of.set(std::string(to_string(kind)),
                  Value().set("date", std::string(p->date)).set("source", std::string(p->source)));
  }
  return out.set("list_price_of", dates()).set("list_prices", std::move(prices_of));
}

std::vector<ListedMachine> listed_machines(const OfferQuery& query) {
  const PriceKind kind = query.spot ? PriceKind::spot : PriceKind::on_demand;
  std::vector<std::pair<double, ListedMachine>> found;
  for (const ListedMachine& machine : all_machines()) {
    if (!machine.price(kind) || !query.accepts_provider(machine.any().provider)) continue;
    const Offer offer = as_offer(machine, kind, query);
    if (offer.matches(query)) found.emplace_back(merit(query, offer), machine);
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<ListedMachine> out;
  for (const auto& [number, machine] : found) out.push_back(machine);
  return out;
}

const ListPrice* list_price_of(const Offer& offer) {
  const PriceKind kind = offer.spot ? PriceKind::spot : PriceKind::on_demand;
  const std::string type = type_of(offer);
  for (const ListPrice& row : list_prices())
    if (row.provider == offer.provider && row.type == type && row.kind == kind &&
        (row.region.empty() || row.region == offer.region))
      return &row;
  return nullptr;
}

std::string list_price_words(std::string_view dates) { return "list price of " + std::string(dates); }

}  // namespace rille::provider
