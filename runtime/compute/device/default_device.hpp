// Chooses the device that rille.device() returns: the first GPU if the machine has one, else the CPU. If the GPU cannot
// be used, the result is an error, not the CPU: the user may be paying rent for the GPU. Any thread.
#pragma once

#include <string>

#include "runtime/core/base/result.hpp"

namespace rille::device {

// The evidence that the machine has an NVIDIA GPU: "NVIDIA H200 (NVML)", "/dev/nvidia0". "": there is none, or
// CUDA_VISIBLE_DEVICES ("", "-1") hides all GPUs from this process.
std::string sign_of_gpu();

// Returns the value of RILLE_DEVICE if it is set, else "cuda:0" or "cpu". Error of kind device, code gpu_unusable: the
// machine has a GPU that cannot be used; the message says why. RILLE_DEVICE=cpu continues without the GPU.
Result<std::string> default_device();

}  // namespace rille::device
