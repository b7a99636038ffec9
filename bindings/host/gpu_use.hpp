// Whether the CUDA part of this build can use a GPU. docs/design/cuda.md defines "can use".
#pragma once

#include "runtime/workflow/lease/gpu_use.hpp"

namespace rille::host {

// An error that says why this build cannot use the GPU; empty: it can. The function's type is lease::GpuUse.
std::optional<Error> why_no_use_of_gpu(const lease::GpuAsked& asked);
// The build id, followed by a hash of the CUDA part if there is one: programs built from equal sources may contain
// different kernel images. `rille agent install` prints this identity.
std::string install_identity();

}  // namespace rille::host
