// Rille's own kernels in the plug-in: the build's images, or the sources compiled by the machine's NVRTC. Card::find()
// and Card::give() (card.hpp) use them.
#pragma once

#include "runtime/compute/device/cuda/driver.hpp"
#include "runtime/compute/device/cuda/plugin.hpp"

namespace rille::device::cuda {

void tell_kernels(Kernels* out);                  // any thread
bool tell_source(int number, KernelSource* out);  // any thread
// Refuses a driver older than the images if no NVRTC can compile the sources for it.
bool knows_kernels(const Driver& driver, Failure& f);
// Whether an image of the build runs on that GPU architecture with this driver.
bool fits_images(const Driver& driver, int architecture);

}  // namespace rille::device::cuda
