// Rille's own kernels in the plug-in: the images of the build, or what a machine's NVRTC made of the sources. What a
// card does with them is in card.hpp: find() and give().
#pragma once

#include "runtime/compute/device/cuda/driver.hpp"
#include "runtime/compute/device/cuda/plugin.hpp"

namespace rille::device::cuda {

void tell_kernels(Kernels* out);                  // any thread
bool tell_source(int number, KernelSource* out);  // any thread
// Refuses a driver that is older than the images where nothing here compiles the sources for it.
bool knows_kernels(const Driver& driver, Failure& f);
// Whether an image of the build runs on a GPU of that architecture with this driver.
bool fits_images(const Driver& driver, int architecture);

}  // namespace rille::device::cuda
