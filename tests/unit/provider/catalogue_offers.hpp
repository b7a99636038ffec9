// Offers by chance, for the tests and the benchmark of the catalogue: every field is used, and small sets of words make
// queries meet some of them.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "runtime/workflow/provider/catalogue/known.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::provider::test {

inline std::vector<Offer> random_offers(std::size_t n, unsigned seed, const std::string& provider, bool spot) {
  struct Model {
    const char* name;
    std::int64_t gb;
  };
  constexpr Model models[] = {{"A100", 80}, {"A100", 40},  {"H100", 80},     {"H200", 141},   {"T4", 16},  {"L4", 24},
                              {"V100", 16}, {"B200", 180}, {"RTX 4090", 24}, {"MI300X", 192}, {"K80", 12}, {"", 0}};
  constexpr const char* regions[] = {"us-east-1", "eu-central-1", "eu-west-2", "cn-north-1", "us-gov-west-1", "ap-1"};
  constexpr const char* links[] = {"", "pcie", "nvlink", "nvswitch", "xgmi"};
  constexpr const char* rdmas[] = {"", "", "efa", "infiniband", "roce"};
  std::mt19937 dice(seed);
  const auto throw_of = [&dice](std::size_t sides) { return dice() % sides; };
  std::vector<Offer> out;
  for (std::size_t i = 0; i < n; ++i) {
    const Model& m = models[throw_of(std::size(models))];
    Offer o;
    o.provider = provider;
    o.gpu = m.name;
    o.gpu_count = *m.name ? 1 << throw_of(4) : 0;
    o.gpu_memory_bytes = m.gb << 30;
    o.vcpus = 4 << throw_of(6);
    o.memory_bytes = static_cast<std::int64_t>(16 << throw_of(7)) << 30;
    o.region = regions[throw_of(std::size(regions))];
    o.id = o.region + "/type-" + std::to_string(i) + (spot ? ":spot" : "");
    o.spot = spot;
    o.price_micros_per_hour = throw_of(20) == 0 ? price_unknown : static_cast<Micros>(100'000 + dice() % 40'000'000);
    o.currency = throw_of(5) == 0 ? "CNY" : "USD";
    if (!spot && throw_of(2) && o.price_micros_per_hour > 0) {
      o.reserved_1y_micros_per_hour = o.price_micros_per_hour * 6 / 10;
      o.reserved_3y_micros_per_hour = throw_of(4) ? o.price_micros_per_hour * 4 / 10 : price_unknown;
    }
    o.billing.unit_s = throw_of(2) ? 1 : 60;
    o.billing.minimum_s = 60;
    o.disk_bytes_max = throw_of(2) ? 2'000'000'000'000 : 0;
    if (o.disk_bytes_max) o.disk_micros_per_gb_hour = 120;
    if (o.gpu_count > 1) o.interconnect = links[throw_of(std::size(links))];
    o.rdma = rdmas[throw_of(std::size(rdmas))];
    o.network_gbps = static_cast<double>(throw_of(5) * 100);
    if (throw_of(3) == 0) o.disk_kind = "nvme";
    if (throw_of(4) == 0) o.driver = "550.54", o.cuda_max = "12.4";
    complete(o);
    out.push_back(std::move(o));
  }
  return out;
}

}  // namespace rille::provider::test
