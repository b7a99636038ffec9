// The GPUs of this computer, read with NVML. A partitioned GPU is listed as its MIG instances. Callable from any
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/core/base/result.hpp"

namespace rille::telemetry {

struct GpuHere {
  std::string uuid;               // "GPU-..." or "MIG-..."; can be put into CUDA_VISIBLE_DEVICES
  std::string name;               // such as "NVIDIA H200" or "NVIDIA H100 80GB HBM3 MIG 1g.10gb"
  std::int64_t memory_bytes = 0;  // 0: unknown
};

// Error `device`: the NVML library is missing or finds no driver. A GPU that has fallen off the bus is left out.
Result<std::vector<GpuHere>> gpus_here();

}  // namespace rille::telemetry
