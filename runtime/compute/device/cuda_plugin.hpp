// Finds and loads the CUDA plug-in, librille_cuda.so: RILLE_CUDA_PLUGIN names the file, else it is beside this library
// or program, or in ../lib. It is loaded once and never unloaded; a failed load is tried again at the next call. Any
// thread.
//
// Errors, kind device: no plug-in, a plug-in of another build of Rille, or no driver that the plug-in can use.
#pragma once

#include <string>
#include <vector>

#include "runtime/compute/device/cuda/plugin.hpp"
#include "runtime/core/base/result.hpp"

namespace rille::device {

Result<const cuda::Table*> cuda_plugin();
// The plug-in's path; "": not found.
std::string cuda_plugin_place();
// The path of the plug-in installed with this program, regardless of RILLE_CUDA_PLUGIN; "": not found.
std::string cuda_plugin_beside();
// Describes Rille's own kernels in the plug-in; needs no driver.
Result<cuda::Kernels> cuda_kernels();
// Loads NVIDIA's driver library and describes it.
Result<cuda::DriverInfo> cuda_driver();

struct CudaCard {
  int ordinal = 0;  // 0 for "cuda:0"
  cuda::CardInfo info;
};
// The cards that CUDA_VISIBLE_DEVICES leaves visible; a MIG instance counts as a card.
Result<std::vector<CudaCard>> cuda_cards();

Error cuda_error(const cuda::Failure& failure);

}  // namespace rille::device
