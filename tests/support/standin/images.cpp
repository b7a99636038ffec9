// One image without device code: the stand-in driver finds kernels by name in the shim's library.
#include <cstdlib>

#include "kernels/cuda/images.hpp"
#include "kernels/cuda/launcher.hpp"

namespace rille::kernels::cuda {

constexpr char nothing[] = "kernels of the build";
const Image images[] = {{"standin", nothing, sizeof nothing}};
const std::size_t image_count = 1;
// RILLE_STANDIN_TOOLKIT plays a build by a newer nvcc.
int images_cuda() {
  const char* asked = std::getenv("RILLE_STANDIN_TOOLKIT");
  return asked ? std::atoi(asked) : 12000;
}

}  // namespace rille::kernels::cuda
