// The GPUs that the provider `local` offers: those in NVML that this process may use, and which of them are free
// (store/gpu_claim.hpp). Any thread; blocks while NVML starts.
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
  bool part = false;     // a MIG slice: a process can use only one
  bool runnable = true;  // false: too old for Rille's CUDA plug-in
};

// Empty without NVML, and if RILLE_DEVICE=cpu or CUDA_VISIBLE_DEVICES hides all.
std::vector<LocalGpu> local_gpus();

// One offer per model and number of free GPUs; all other fields as in `machine`.
std::vector<Offer> gpu_offers(const std::vector<LocalGpu>& all, const store::GpuClaims& claims, const Offer& machine,
                              std::int64_t now_wall_us);

// Claims as many free GPUs as the offer has for `owner`; earlier claims of that owner count. capacity: too few are
// free.
Result<std::vector<std::string>> claim_gpus(const std::vector<LocalGpu>& all, const store::GpuClaims& claims,
                                            const Offer& offer, const std::string& owner, std::int64_t now_wall_us);

}  // namespace rille::provider
