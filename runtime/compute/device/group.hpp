// Compiles a group of element-wise operations into one CUDA kernel. The kernel's source is generated from the functions
// that the separate operations' kernels use (kernels/cuda/walk.h, arithmetic.h, functions.h); NVRTC compiles it for the
// card. Values stay in registers. Each value is rounded to its type and no operations are contracted, so results are
// bitwise equal to those of the separate operations.
//
// If the kernel cannot be compiled or loaded, the operations run one by one (kernels/cuda/group.cpp). Threads:
// group_source() any; a Group's mutable members belong to its device's lane.
#pragma once

#include <memory>
#include <string>

#include "kernels/fused.hpp"
#include "runtime/core/base/result.hpp"

namespace rille::device {

// Payload of the operation `fused`, on any device.
struct Group : kernels::Fused {
  mutable std::shared_ptr<void> loaded;  // owns the module that contains `function`
  mutable bool tried = false;            // whether compiling was attempted
};

inline constexpr const char* group_kernel = "rille_group";

// Returns the group's CUDA C++ source; `call` gives the types of its operands.
std::string group_source(const kernels::Fused& group, const kernels::Call& call);

struct Cubin;
// Blocks while NVRTC runs, unless the result is cached on disk. `arch`: "sm_90"; `cache`: a directory, "": no caching.
Result<Cubin> build_group(const std::string& source, const std::string& arch, const std::string& cache);

}  // namespace rille::device
