#include "runtime/workflow/provider/sim/catalogue.hpp"

namespace rille::provider::sim {

namespace {
constexpr std::int64_t gb = 1'000'000'000;
}

const std::vector<Type>& types() {
  static const std::vector<Type> all = {
      // id, GPU, GPU count, memory of one GPU, vCPUs, main memory, dollars per hour, spot share, preemptions per day
      {"cpu-4", "", 0, 0, 4, 16 * gb, 0.17, 0.35, 0.3},
      {"cpu-16", "", 0, 0, 16, 64 * gb, 0.68, 0.35, 0.3},
      {"t4", "T4", 1, 16 * gb, 4, 16 * gb, 0.53, 0.40, 0.6},
      {"l4", "L4", 1, 24 * gb, 8, 32 * gb, 0.81, 0.45, 0.8},
      {"a10", "A10", 1, 24 * gb, 8, 32 * gb, 1.01, 0.45, 0.8},
      {"rtx4090", "RTX 4090", 1, 24 * gb, 16, 64 * gb, 0.69, 0.55, 1.5},
      {"v100", "V100", 1, 16 * gb, 8, 61 * gb, 2.48, 0.35, 1.0},
      {"a100-40", "A100 40GB", 1, 40 * gb, 12, 85 * gb, 2.93, 0.45, 1.6},
      {"a100-80", "A100 80GB", 1, 80 * gb, 12, 170 * gb, 3.67, 0.45, 1.8},
      {"h100", "H100", 1, 80 * gb, 26, 200 * gb, 3.99, 0.60, 2.4},
      {"a100-80x8", "A100 80GB", 8, 80 * gb, 96, 1152 * gb, 29.36, 0.45, 3.0},
      {"h100x8", "H100", 8, 80 * gb, 192, 2048 * gb, 31.92, 0.60, 4.0},
      {"h200x8", "H200", 8, 141 * gb, 192, 2048 * gb, 39.80, 0.65, 4.0},
      {"b200x8", "B200", 8, 180 * gb, 224, 2048 * gb, 53.00, 0.70, 5.0},
  };
  return all;
}

const std::vector<Type>& volume_types() {
  static const std::vector<Type> all = {{"ssd", "", 0, 0, 0, 0, 0.11, 0, 0}, {"shared", "", 0, 0, 0, 0, 0.41, 0, 0}};
  return all;
}

const std::vector<Region>& regions() {
  static const std::vector<Region> all = {
      {"us-east", 1.00}, {"us-west", 1.05}, {"eu-west", 1.12}, {"ap-southeast", 1.21}};
  return all;
}

std::string offer_id(const OfferParts& place) {
  return std::string(place.type->id) + "@" + place.region->id + (place.spot ? ":spot" : "");
}

OfferParts find_place(std::string_view id) {
  for (const OfferParts& place : all_places())
    if (offer_id(place) == id) return place;
  return {};
}

std::vector<OfferParts> all_places() {
  std::vector<OfferParts> out;
  for (const Type& type : types())
    for (const Region& region : regions())
      for (bool spot : {false, true}) out.push_back({&type, &region, spot});
  return out;
}

}  // namespace rille::provider::sim
