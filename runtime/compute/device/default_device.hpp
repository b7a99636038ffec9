// The device of rille.device(): the first GPU if the machine has one, else the CPU. A GPU that cannot be used is an
// error, with no silent fallback to the CPU: it may be a rented one. Any thread.
#pragma once

#include <string>

#include "runtime/core/base/result.hpp"

namespace rille::device {

// The evidence for an NVIDIA GPU: "NVIDIA H200 (NVML)", "/dev/nvidia0"; "": none, or CUDA_VISIBLE_DEVICES hides all
// GPUs from this process ("", "-1").
std::string sign_of_gpu();

// "cuda:0" or "cpu", unless RILLE_DEVICE names one. device, code gpu_unusable: there is a GPU that cannot be used, and
// why; RILLE_DEVICE=cpu continues without it.
Result<std::string> default_device();

}  // namespace rille::device
