// One image without device code: the stand-in driver finds kernels by name in the shim's library.
#include "kernels/cuda/launcher.hpp"

namespace rille::kernels::cuda {

constexpr char nothing[] = "kernels of the build";
const Image images[] = {{"standin", nothing, sizeof nothing}};
const std::size_t image_count = 1;

}  // namespace rille::kernels::cuda
