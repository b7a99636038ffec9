// The device code that the CUDA plug-in contains: images (launcher.hpp) that nvcc made for some architectures, and all
// sources, for a GPU that no image fits.
#pragma once

#include <cstddef>

namespace rille::kernels::cuda {

struct Built {
  int cuda = 0;                         // CUDA version of the images, 13000 for nvcc 13.0; 0: no images
  int ptx = 0;                          // architecture of the PTX, 90, which later GPUs can run; 0: no PTX
  const int* architectures = nullptr;   // architectures that have images, such as 80, 90
  int architecture_count = 0;
};
Built images_built();

// A file below kernels/cuda. The text ends with a zero byte.
struct Source {
  const char* name;                     // "kernels/cuda/attention.cu", as in an #include
  const char* text;
  std::size_t bytes;
  bool kernels;                         // compiled by itself; false: a header of other files
  bool joined;                          // false: compiled with -fmad=false (no fused multiply-add)
};
extern const Source sources[];
extern const std::size_t source_count;

}  // namespace rille::kernels::cuda
