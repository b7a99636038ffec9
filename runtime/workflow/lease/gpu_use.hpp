// Which GPUs this build of Rille can compute on. The lease layer knows no CUDA: bindings/host/gpu_use.hpp supplies this
// function, which is called before a GPU is rented.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "runtime/core/base/error.hpp"

namespace rille::lease {

struct GpuAsked {
  std::string model, vendor;      // vendor "": unknown
  std::int64_t memory_bytes = 0;  // 0: unknown
  bool owned = false;             // provider::Traits::owned: the user owns the machine, so trying the GPU costs nothing
};

// config, code gpu_unusable: why this build cannot use the GPU, and the one command that fixes that. nullopt: it can,
// or the GPU is not a CUDA GPU. Loop thread only; it may read files.
using GpuUse = std::function<std::optional<Error>(const GpuAsked&)>;

}  // namespace rille::lease
