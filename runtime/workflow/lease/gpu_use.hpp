// What this build of Rille can compute on. The lease layer knows no CUDA: bindings/host/gpu_use.hpp gives it this
// question, and it asks before it rents a GPU.
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
  bool owned = false;             // a try costs nothing there: provider::Traits::owned
};

// config, code gpu_unusable: why this build cannot use it, and the one command that mends that. Null: it can, or it is
// no GPU of CUDA's. Loop thread only; it may read files.
using GpuUse = std::function<std::optional<Error>(const GpuAsked&)>;

}  // namespace rille::lease
