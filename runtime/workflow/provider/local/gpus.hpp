// The GPUs that the provider `local` offers: GPUs that NVML lists, that this process may use, and that no other
// instance has claimed (store/gpu_claim.hpp). Any thread; blocks while NVML starts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/store/gpu_claim.hpp"
#include "runtime/workflow/provider/types.hpp"

namespace rille::provider {

struct LocalGpu {
  std::string uuid, model;  // `model`: "H200", "H100 80GB MIG 1g.10gb"
  std::int64_t memory_bytes = 0;
  bool part = false;     // a MIG slice; a process can use only one slice
  bool runnable = true;  // false: Rille's CUDA plug-in does not support the GPU
};

// All usable GPUs. Empty without NVML, with RILLE_DEVICE=cpu, or if CUDA_VISIBLE_DEVICES hides all GPUs.
std::vector<LocalGpu> local_gpus();

// For each GPU model with n free GPUs, the offers of 1 to n GPUs; all other fields are copied from `machine`.
std::vector<Offer> gpu_offers(const std::vector<LocalGpu>& all, const store::GpuClaims& claims, const Offer& machine,
                              std::int64_t now_wall_us);

// Claims offer.gpu_count free GPUs for `owner` and returns their uuids; GPUs that the owner already has count. Error
// capacity: too few GPUs are free.
Result<std::vector<std::string>> claim_gpus(const std::vector<LocalGpu>& all, const store::GpuClaims& claims,
                                            const Offer& offer, const std::string& owner, std::int64_t now_wall_us);

}  // namespace rille::provider
