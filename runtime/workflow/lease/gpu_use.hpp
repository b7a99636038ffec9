// Which GPUs this build of Rille can compute on. The lease layer knows no CUDA: bindings/host/gpu_use.hpp supplies this
// function, which is called before a machine with a GPU is rented, and before a machine becomes one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "runtime/core/base/error.hpp"

namespace rille::lease {

struct GpuAsked {
  std::string model, vendor;      // vendor "": the vendor is unknown
  std::int64_t memory_bytes = 0;  // memory of one GPU; 0: unknown
  bool owned = false;             // the user owns the machine (provider::Traits::owned): trying the GPU costs nothing
};

// Returns nullopt if this build can use the GPU, or if the GPU is not a CUDA GPU. Otherwise returns a `config` error,
// code gpu_unusable, with the reason and the one command that fixes it. Loop thread only; it may read files.
using GpuUse = std::function<std::optional<Error>(const GpuAsked&)>;

}  // namespace rille::lease
