// An image without device code: the stand-in driver finds kernels by name in the shim's library. Environment variables
// simulate other builds when the plug-in is loaded: RILLE_STANDIN_TOOLKIT=13000 sets the nvcc version,
// RILLE_STANDIN_IMAGES=80,86 provides images for these architectures and no PTX, RILLE_STANDIN_IMAGES=none provides
// none.
#include "kernels/cuda/images.hpp"

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/cuda/launcher.hpp"

namespace rille::kernels::cuda {

namespace {

const char* asked_images() { return std::getenv("RILLE_STANDIN_IMAGES"); }
bool has_images() { return !asked_images() || std::strcmp(asked_images(), "none") != 0; }

const std::vector<int>& architectures() {
  static const std::vector<int> all = [] {
    std::vector<int> out;
    const std::string text = asked_images() ? asked_images() : "75,80,86,89,90,100,120";
    for (std::size_t at = 0; has_images() && at < text.size(); at = text.find(',', at) + 1) {
      out.push_back(std::atoi(text.c_str() + at));
      if (text.find(',', at) == text.npos) break;
    }
    return out;
  }();
  return all;
}

}  // namespace

constexpr char nothing[] = "kernels of the build";
const Image images[] = {{"standin", nothing, sizeof nothing}};
const std::size_t image_count = has_images() ? 1 : 0;

Built images_built() {
  const char* toolkit = std::getenv("RILLE_STANDIN_TOOLKIT");
  const int cuda = !has_images() ? 0 : toolkit ? std::atoi(toolkit) : 12000;
  return {cuda, asked_images() ? 0 : 90, architectures().data(), int(architectures().size())};
}

}  // namespace rille::kernels::cuda
