// Of which CUDA the images are (launcher.hpp): 13000 for nvcc 13.0; 0: there was no nvcc. A driver of an older one
// refuses them.
#pragma once

namespace rille::kernels::cuda {

int images_cuda();

}  // namespace rille::kernels::cuda
