// List prices for the simulated cloud: which of its types have one, for rehearsals whose costs should be near to real
// ones. Constant data and pure functions; any thread.
#pragma once

#include <map>
#include <string>

#include "runtime/workflow/provider/catalogue/list_price.hpp"
#include "runtime/workflow/provider/sim/options.hpp"

namespace rille::provider::sim {

// What the list has of a type's GPUs.
struct ListedType {
  const ListPrice* on_demand = nullptr;  // the cheapest of any provider; never null
  // The cheapest spot price of a machine that has an on-demand price, too; null: the simulated cloud keeps its own
  // share.
  const ListPrice* spot = nullptr;
  double spot_share = 0;  // that price as a share of its machine's on-demand price
};
// By Type::id; a type whose GPUs are not listed has no entry.
const std::map<std::string, ListedType>& listed_types();

// The options with the list's prices, as far as it has any.
Options with_list_prices(Options options);

// "lambda's list price of 2026-10-10, on spot 57 % of it as gcp's list price of 2026-10-10"
std::string price_words(const ListedType& type);

}  // namespace rille::provider::sim
