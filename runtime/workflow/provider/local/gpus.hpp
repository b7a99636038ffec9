// The GPUs that the provider `local` offers: those that NVML shows and this process may see, and which of them are free
// (store/gpu_claim.hpp). Any thread; it blocks while NVML starts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/store/gpu_claim.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

struct LocalGpu {
  std::string uuid, model;  // "H200", "H100 80GB MIG 1g.10gb"
  std::int64_t memory_bytes = 0;
  bool part = false;     // of a divided GPU: a process can use one of them
  bool runnable = true;  // false: Rille's CUDA part does not know such an old one
};

// None where there is no NVML, or RILLE_DEVICE=cpu or CUDA_VISIBLE_DEVICES hides all.
std::vector<LocalGpu> local_gpus();

// One offer for each model and number of free ones, like `machine` in all else.
std::vector<Offer> gpu_offers(const std::vector<LocalGpu>& all, const store::GpuClaims& claims, const Offer& machine,
                              std::int64_t now_wall_us);

// As many free ones as the offer has, claimed for `owner`; what it has claimed before counts. capacity: too few are.
Result<std::vector<std::string>> claim_gpus(const std::vector<LocalGpu>& all, const store::GpuClaims& claims,
                                            const Offer& offer, const std::string& owner, std::int64_t now_wall_us);

}  // namespace rille::provider
