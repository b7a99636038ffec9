// Finds and loads the CUDA plug-in, librille_cuda.so: named by RILLE_CUDA_PLUGIN, or beside this library or program, or
// in ../lib. Loaded once and never unloaded; a failure is not kept, the next call tries again. Any thread.
//
// Errors, kind device: no plug-in, one of another build, or no driver that it can use.
#pragma once

#include <string>
#include <vector>

#include "runtime/compute/device/cuda/plugin.hpp"
#include "runtime/core/base/result.hpp"

namespace rille::device {

Result<const cuda::Table*> cuda_plugin();
// Its path; "": not found.
std::string cuda_plugin_place();
// The path of this program's own plug-in, regardless of RILLE_CUDA_PLUGIN.
std::string cuda_plugin_beside();
// Rille's own kernels in the plug-in; needs no driver.
Result<cuda::Kernels> cuda_kernels();
// Loads the driver.
Result<cuda::DriverInfo> cuda_driver();

struct CudaCard {
  int ordinal = 0;  // "cuda:0"
  cuda::CardInfo info;
};
// The cards that CUDA_VISIBLE_DEVICES leaves visible; a MIG instance counts as a card.
Result<std::vector<CudaCard>> cuda_cards();

Error cuda_error(const cuda::Failure& failure);

}  // namespace rille::device
