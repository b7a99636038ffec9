// What the CUDA plug-in has of the device code: images (launcher.hpp) that nvcc made for some architectures, and the
// sources of all, for a GPU that no image fits.
#pragma once

#include <cstddef>

namespace rille::kernels::cuda {

struct Built {
  int cuda = 0;                         // the images' CUDA, 13000 for nvcc 13.0; 0: there are no images
  int ptx = 0;                          // of the PTX among them, 90: it serves later GPUs; 0: there is none
  const int* architectures = nullptr;   // 80, 90
  int architecture_count = 0;
};
Built images_built();

// A file below kernels/cuda, its text ends with a zero.
struct Source {
  const char* name;                     // "kernels/cuda/attention.cu", as an #include names it
  const char* text;
  std::size_t bytes;
  bool kernels;                         // compiled by itself; false: a header of the others
  bool joined;                          // false: compiled with -fmad=false
};
extern const Source sources[];
extern const std::size_t source_count;

}  // namespace rille::kernels::cuda
