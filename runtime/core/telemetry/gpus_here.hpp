// The GPUs of this computer, as NVML lists them. A divided one is given as its instances (MIG). Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/base/result.hpp"

namespace rille::telemetry {

struct GpuHere {
  std::string uuid;               // "GPU-...", "MIG-...": as CUDA_VISIBLE_DEVICES takes it
  std::string name;               // "NVIDIA H200", "NVIDIA H100 80GB HBM3 MIG 1g.10gb"
  std::int64_t memory_bytes = 0;  // 0: it does not tell
};

// device: there is no NVML here, or it finds no driver. A card that has fallen off its bus is left out.
Result<std::vector<GpuHere>> gpus_here();

}  // namespace rille::telemetry
