// Finds and loads the CUDA plug-in, librille_cuda.so: RILLE_CUDA_PLUGIN, or beside this library or program, or in
// ../lib of it. Loaded once and never unloaded; a failure is tried again. Any thread.
//
// Errors, kind device: there is no plug-in here, it is of another build, or there is no driver that it can use.
#pragma once

#include <string>
#include <vector>

#include "runtime/compute/device/cuda/plugin.hpp"
#include "runtime/core/base/result.hpp"

namespace rille::device {

Result<const cuda::Table*> cuda_plugin();
// Where it is; "": nowhere.
std::string cuda_plugin_place();
// The one that belongs to this program, whatever RILLE_CUDA_PLUGIN says.
std::string cuda_plugin_beside();
// The plug-in's own kernels; no driver is needed.
Result<cuda::Kernels> cuda_kernels();
// With the driver, which is loaded here.
Result<cuda::DriverInfo> cuda_driver();

struct CudaCard {
  int ordinal = 0;  // "cuda:0"
  cuda::CardInfo info;
};
// As CUDA_VISIBLE_DEVICES lets the driver see them; an instance of a divided GPU (MIG) is one.
Result<std::vector<CudaCard>> cuda_cards();

Error cuda_error(const cuda::Failure& failure);

}  // namespace rille::device
