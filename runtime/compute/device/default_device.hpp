// Which device rille.device() means: the first GPU on a machine that has one, else the processor. A GPU that cannot be
// used is an error, never the processor in silence: it may be a rented one. Any thread.
#pragma once

#include <string>

#include "runtime/core/base/result.hpp"

namespace rille::device {

// How this machine shows that it has an NVIDIA GPU: "NVIDIA H200 (NVML)", "/dev/nvidia0"; "": it has none, or
// CUDA_VISIBLE_DEVICES hides all from this process ("", "-1").
std::string sign_of_gpu();

// "cuda:0" or "cpu", unless RILLE_DEVICE names one. device, code gpu_unusable: there is a GPU, and what is missing for
// its use; RILLE_DEVICE=cpu goes on without it.
Result<std::string> default_device();

}  // namespace rille::device
