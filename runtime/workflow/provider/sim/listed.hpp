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
  const ListPrice* spot = nullptr;  // likewise; null: the list has none, and the simulated cloud keeps its own share
  double spot_share = 0;            // the spot price as a share of the on-demand price, less than 1
};
// By Type::id; a type whose GPUs are not listed has no entry.
const std::map<std::string, ListedType>& listed_types();

// The options with the list's prices, as far as it has any.
Options with_list_prices(Options options);

// "lambda's list price of 2026-10-10, on spot azure's list price of 2026-10-10, 57 % of it"
std::string price_words(const ListedType& type);

}  // namespace rille::provider::sim
