// Rille's own kernels in the plug-in: images that the build contains, or sources that the machine's NVRTC compiles.
// Card::find() and Card::give() (card.hpp) use them.
#pragma once

#include "runtime/compute/device/cuda/driver.hpp"
#include "runtime/compute/device/cuda/plugin.hpp"

namespace rille::device::cuda {

void tell_kernels(Kernels* out);                  // any thread
bool tell_source(int number, KernelSource* out);  // any thread
// false: the driver is older than the images, and no NVRTC is installed that can compile the sources for it.
bool knows_kernels(const Driver& driver, Failure& f);
// Whether an image of the build runs on a GPU of this architecture with this driver.
bool fits_images(const Driver& driver, int architecture);

}  // namespace rille::device::cuda
