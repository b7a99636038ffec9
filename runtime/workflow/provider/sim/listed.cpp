#include "runtime/workflow/provider/sim/listed.hpp"

#include <fmt/format.h>

#include <vector>

#include "runtime/workflow/provider/catalogue/known.hpp"
#include "runtime/workflow/provider/sim/catalogue.hpp"

namespace rille::provider::sim {

namespace {

// Takes the machine's prices where they are cheaper.
void take_machine(ListedType& kept, const ListedMachine& machine) {
  const ListPrice *on_demand = machine.price(PriceKind::on_demand), *spot = machine.price(PriceKind::spot);
  if (!on_demand) return;
  if (!kept.on_demand || on_demand->dollars < kept.on_demand->dollars) kept.on_demand = on_demand;
  if (!spot || (kept.spot && spot->dollars >= kept.spot->dollars)) return;
  kept.spot = spot;
  kept.spot_share = spot->dollars / on_demand->dollars;
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
    if (found.on_demand) out[type.id] = found;
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
  return fmt::format("{}, on spot {:.0f} % of it as {}", one(*type.on_demand), 100 * type.spot_share, one(*type.spot));
}

}  // namespace rille::provider::sim
