// A group of element-wise operations on a CUDA device becomes one kernel: its source, generated from the functions
// that the operations' own kernels are made of (kernels/cuda/walk.h, arithmetic.h, functions.h), and compiled by NVRTC
// for the card. Values stay in registers; each is rounded to its type, and no two operations are contracted, so the
// bits are those of the operations one by one.
//
// Where it cannot be compiled or loaded the launch runs the operations one by one (kernels/cuda/group.cpp). Threads:
// group_source() any; a Group's mutable part belongs to its device's lane.
#pragma once

#include <memory>
#include <string>

#include "kernels/fused.hpp"
#include "runtime/core/base/result.hpp"

namespace rille::device {

// Payload of `fused` wherever it may run.
struct Group : kernels::Fused {
  mutable std::shared_ptr<void> loaded;  // keeps `function`
  mutable bool tried = false;            // it was compiled, or could not be
};

inline constexpr const char* group_kernel = "rille_group";

// CUDA C++ of the group; `call` gives the types of what it reads and writes.
std::string group_source(const kernels::Fused& group, const kernels::Call& call);

struct Cubin;
// Blocks while NVRTC runs, unless it is kept on disk. `arch`: "sm_90"; `cache`: a directory, or "".
Result<Cubin> build_group(const std::string& source, const std::string& arch, const std::string& cache);

}  // namespace rille::device
