// What this build of Rille can compute on. The lease layer knows no CUDA: whoever does gives it this question, which is
// asked before a GPU is rented.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "runtime/base/error.hpp"

namespace rille::lease {

struct GpuAsked {
  std::string model, vendor;           // vendor "": nobody knows
  std::int64_t memory_bytes = 0;       // 0: nobody knows
  bool owned = false;                  // a try costs nothing there: provider::Traits::owned
};

// config, code gpu_unusable: why this build cannot use it, and the one command that mends that. Null: it can, or it is
// no GPU of CUDA's. Loop thread only; it may read files.
using GpuUse = std::function<std::optional<Error>(const GpuAsked&)>;

}  // namespace rille::lease
