// What of this build's CUDA part others need to know. docs/design/cuda.md says what "can use" means.
#pragma once

#include "runtime/workflow/lease/gpu_use.hpp"

namespace rille::host {

std::optional<Error> why_no_use_of_gpu(const lease::GpuAsked& asked);  // a lease::GpuUse
// The build, and a hash of its CUDA part if it has one, for the sources do not tell its images: what `rille agent
// install` prints.
std::string install_identity();

}  // namespace rille::host
