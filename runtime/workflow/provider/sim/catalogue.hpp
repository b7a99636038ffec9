// The simulated cloud's offers: instance types with names, sizes and rough prices of real ones, in four regions, on
// demand and spot. The prices are invented; they have the right order of magnitude.
#pragma once

#include <string>
#include <vector>

#include "runtime/workflow/provider/types.hpp"

namespace rille::provider::sim {

struct Type {
  const char* id;
  const char* gpu;  // GPU model; "": no GPU
  int gpu_count;
  std::int64_t gpu_memory_bytes;
  int vcpus;
  std::int64_t memory_bytes;
  double price;                // on-demand price in the cheapest region, dollars per hour
  double spot_share;           // mean spot price as a share of `price`
  double preemptions_per_day;  // mean number of preemptions of a spot machine per day
};

struct Region {
  const char* id;
  double price_factor;
};

const std::vector<Type>& types();
const std::vector<Type>& volume_types();  // price: dollars per hour of a terabyte
const std::vector<Region>& regions();

// The parts of an offer id such as "h100x8@us-east:spot". type and region are null if the id is unknown.
struct OfferParts {
  const Type* type = nullptr;
  const Region* region = nullptr;
  bool spot = false;
};
std::string offer_id(const OfferParts& place);
OfferParts find_place(std::string_view offer_id);
std::vector<OfferParts> all_places();

}  // namespace rille::provider::sim
