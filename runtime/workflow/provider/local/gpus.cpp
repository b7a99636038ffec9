#include "runtime/workflow/provider/local/gpus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include "runtime/core/telemetry/gpus_here.hpp"
#include "runtime/workflow/provider/catalogue/known.hpp"
#include "runtime/workflow/provider/gpu_facts.hpp"
#include "runtime/workflow/provider/gpus.hpp"

namespace rille::provider {

namespace {

// The entries of CUDA_VISIBLE_DEVICES; a number counts GPUs in NVML's order, by bus id. nullopt: not set.
std::optional<std::vector<std::string>> visible_words() {
  const char* text = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!text) return std::nullopt;
  std::vector<std::string> out;
  const std::string all = text;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find(',', at), all.size());
    out.push_back(all.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

bool is_old(const std::string& model, std::int64_t memory_bytes) {
  const GpuFacts* facts = gpu_facts(model, memory_bytes);
  return facts && !runs_plugin(model, memory_bytes);
}

}  // namespace

std::vector<LocalGpu> local_gpus() {
  const char* device = std::getenv("RILLE_DEVICE");
  if (device && std::string_view(device) == "cpu") return {};
  const auto seen = telemetry::gpus_here();
  if (!seen) return {};
  const auto words = visible_words();
  std::vector<LocalGpu> out;
  for (std::size_t i = 0; i < seen->size(); ++i) {
    const telemetry::GpuHere& gpu = (*seen)[i];
    const auto names = [&](const std::string& word) { return word == gpu.uuid || word == std::to_string(i); };
    if (words && std::none_of(words->begin(), words->end(), names)) continue;
    LocalGpu one{gpu.uuid, gpu_model(gpu.name), gpu.memory_bytes, gpu.uuid.starts_with("MIG-"), true};
    one.runnable = !is_old(one.model, one.memory_bytes);
    out.push_back(std::move(one));
  }
  return out;
}

std::vector<Offer> gpu_offers(const std::vector<LocalGpu>& all, const store::GpuClaims& claims, const Offer& machine,
                              std::int64_t now_wall_us) {
  std::map<std::pair<std::string, std::int64_t>, int> free;
  for (const LocalGpu& gpu : all) {
    if (!claims.is_free(gpu.uuid, now_wall_us)) continue;
    int& count = free[{gpu.model, gpu.memory_bytes}];
    count = gpu.part ? 1 : count + 1;
  }
  std::vector<Offer> out;
  for (const auto& [kind, most] : free) {
    for (int count = 1; count <= most; ++count) {
      Offer offer = machine;
      offer.gpu = kind.first;
      offer.gpu_memory_bytes = kind.second;
      offer.gpu_count = count;
      offer.gpu_vendor = "nvidia";
      offer.id = count == 1 ? offer.gpu : fmt::format("{}:{}", offer.gpu, count);
      out.push_back(std::move(offer));
    }
  }
  return out;
}

Result<std::vector<std::string>> claim_gpus(const std::vector<LocalGpu>& all, const store::GpuClaims& claims,
                                            const Offer& offer, const std::string& owner, std::int64_t now_wall_us) {
  std::vector<std::string> mine;
  for (const LocalGpu& gpu : all) {
    if (int(mine.size()) == offer.gpu_count) break;
    if (gpu.model != offer.gpu || gpu.memory_bytes != offer.gpu_memory_bytes) continue;
    RILLE_TRY(const bool got, claims.claim(gpu.uuid, owner, now_wall_us));
    if (got) mine.push_back(gpu.uuid);
  }
  if (int(mine.size()) == offer.gpu_count) return mine;
  for (const std::string& uuid : mine) claims.drop(uuid, owner);
  return make_error(ErrorKind::capacity,
                    fmt::format("of the {} GPUs of this machine, {} are free, but {} are needed", offer.gpu,
                                mine.size(), offer.gpu_count),
                    "other runs use them: `rille leases` shows those of this home");
}

}  // namespace rille::provider
