#include "runtime/workflow/provider/sim/listed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "runtime/workflow/provider/catalogue/known.hpp"
#include "runtime/workflow/provider/sim/catalogue.hpp"

namespace rille::provider::sim {

namespace {

constexpr double spot_share_max = 0.99;  // a provider's spot machines may cost more than another's on demand

// Takes the machine's prices where they are cheaper.
void take_machine(ListedType& kept, const ListedMachine& machine) {
  const ListPrice *on_demand = machine.price(PriceKind::on_demand), *spot = machine.price(PriceKind::spot);
  const auto take = [](const ListPrice*& cheapest, const ListPrice* price) {
    if (price && (!cheapest || price->dollars < cheapest->dollars)) cheapest = price;
  };
  take(kept.on_demand, on_demand);
  take(kept.spot, spot);
}

std::map<std::string, ListedType> find_listed() {
  std::map<std::string, ListedType> out;
  const std::vector<ListedMachine> machines = listed_machines(OfferQuery());
  for (const Type& type : types()) {
    const GpuFacts* gpu = type.gpu_count ? known_gpu(type.gpu, type.gpu_memory_bytes) : nullptr;
    if (!gpu) continue;
    ListedType found;
    for (const ListedMachine& machine : machines)
      if (machine.any().gpu_count == type.gpu_count && known_gpu(machine.any().gpu, 0) == gpu)
        take_machine(found, machine);
    if (!found.on_demand) continue;
    if (found.spot) found.spot_share = std::min(spot_share_max, found.spot->dollars / found.on_demand->dollars);
    out[type.id] = found;
  }
  return out;
}

}  // namespace

const std::map<std::string, ListedType>& listed_types() {
  static const std::map<std::string, ListedType> all = find_listed();
  return all;
}

Options with_list_prices(Options options) {
  const std::map<std::string, ListedType>& listed = listed_types();
  for (const Type& type : types()) {
    const auto found = listed.find(type.id);
    if (found == listed.end()) continue;
    const ListedType& prices = found->second;
    options.prices[type.id] = {prices.on_demand->dollars, prices.spot ? prices.spot_share : type.spot_share};
  }
  return options;
}

std::string price_words(const ListedType& type) {
  const auto one = [](const ListPrice& row) {
    return fmt::format("{}'s {}", row.provider, list_price_words(row.date));
  };
  if (!type.spot) return one(*type.on_demand);
  return fmt::format("{}, on spot {}, {:.0f} % of it", one(*type.on_demand), one(*type.spot), 100 * type.spot_share);
}

}  // namespace rille::provider::sim
