// Whether this build's CUDA part can use a GPU. docs/design/cuda.md defines "can use".
#pragma once

#include "runtime/workflow/lease/gpu_use.hpp"

namespace rille::host {

std::optional<Error> why_no_use_of_gpu(const lease::GpuAsked& asked);  // a lease::GpuUse
// The build id, and a hash of the CUDA part if there is one, since the sources do not determine its kernel images.
// `rille agent install` prints it.
std::string install_identity();

}  // namespace rille::host
