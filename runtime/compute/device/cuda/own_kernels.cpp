#include "runtime/compute/device/cuda/own_kernels.hpp"

#include <algorithm>
#include <cstdio>

#include "kernels/cuda/images.hpp"
#include "runtime/compute/device/cuda/card.hpp"
#include "runtime/compute/device/cuda_libraries.hpp"
#include "runtime/core/base/error.hpp"

namespace rille::device::cuda {

namespace {

// Whether an NVRTC is installed that produces code which this driver can load.
bool can_compile(const Driver& driver) {
  if (kernels::cuda::source_count == 0 || left_out(CudaPart::nvrtc)) return false;
  const auto& nvrtc = load_part(CudaPart::nvrtc);
  return nvrtc.handle && nvrtc.cuda <= driver.version / 1000;
}

}  // namespace

void tell_kernels(Kernels* out) {
  const auto built = kernels::cuda::images_built();
  *out = {};
  out->cuda = built.cuda;
  out->ptx = built.ptx;
  constexpr int most = int(sizeof out->architectures / sizeof *out->architectures) - 1;
  std::copy_n(built.architectures, std::min(built.architecture_count, most), out->architectures);
  out->sources = std::int32_t(kernels::cuda::source_count);
}

bool tell_source(int number, KernelSource* out) {
  if (number < 0 || std::size_t(number) >= kernels::cuda::source_count) return false;
  const auto& s = kernels::cuda::sources[number];
  *out = {s.name, s.text, s.bytes, s.kernels, s.joined};
  return true;
}

bool fits_images(const Driver& driver, int architecture) {
  Kernels built;
  tell_kernels(&built);
  return kernels::cuda::image_count && built.cuda / 1000 <= driver.version / 1000 && has_image(built, architecture);
}

// A driver loads code compiled by an older CUDA version, but not by a newer one.
bool knows_kernels(const Driver& driver, Failure& f) {
  const int made = kernels::cuda::images_built().cuda, known = driver.version;
  if (made / 1000 <= known / 1000 || can_compile(driver)) return true;
  char hint[160];
  std::snprintf(hint, sizeof hint, "update the driver%s; RILLE_DEVICE=cpu computes on the processor",
                made / 1000 == 13 ? ": R580 or newer" : "");
  refuse(f, int(ErrorKind::device), hint,
         "the CUDA driver %s is older than this build's kernels: it supports CUDA %d.%d, and they are of CUDA %d.%d",
         driver.path, known / 1000, known % 1000 / 10, made / 1000, made % 1000 / 10);
  f.code = cu::insufficient_driver;
  return false;
}

// Sets the hint for images that do not fit: the CUDA version that compiled them, and the driver's version.
bool Card::tell_misfit(Failure& f) const {
  Kernels built;
  tell_kernels(&built);
  const int made = built.cuda, known = driver.version;
  const int* const end = std::find(std::begin(built.architectures), std::end(built.architectures), 0);
  const int first = built.architectures[0], last = end == built.architectures ? 0 : end[-1];
  std::snprintf(f.hint, sizeof f.hint,
                "Rille's kernels, of CUDA %d.%d, are for sm_%d to sm_%d, and this is an sm_%d with a driver of CUDA "
                "%d.%d: a newer GPU needs a newer driver; RILLE_DEVICE=cpu computes on the processor",
                made / 1000, made % 1000 / 10, first, last, architecture, known / 1000, known % 1000 / 10);
  return false;
}

bool Card::give(const void* image, Failure& f) {
  CUmodule module = nullptr;
  if (!ok(driver.cuModuleLoadData(&module, image), "loading the kernels that were compiled here", f)) return false;
  given.push_back(module);
  return true;
}

// Searches the build's images for a kernel. An image is loaded only if no image before it has the kernel.
bool Card::find_in_images(const char* name, CUfunction& found, Failure& f) {
  using kernels::cuda::images, kernels::cuda::image_count;
  for (std::size_t i = 0; i < image_count && !found; ++i) {
    if (i == modules.size()) {
      CUmodule module = nullptr;
      const CUresult loaded = driver.cuModuleLoadData(&module, images[i].data);
      if (!ok(loaded, "loading the kernels", f)) return is_misfit(loaded) ? tell_misfit(f) : false;
      modules.push_back(module);
    }
    if (!find_in(modules[i], name, found, f)) return false;
  }
  return true;
}

// Searches one module. Returns true and leaves `found` null if the module lacks the kernel.
bool Card::find_in(CUmodule module, const char* name, CUfunction& found, Failure& f) {
  const CUresult result = driver.cuModuleGetFunction(&found, module, name);
  if (result != cu::not_found) return ok(result, name, f);
  found = nullptr;
  return true;
}

// Finds a kernel by its name. If no module has the kernel, the build is broken.
bool Card::find(const char* name, KernelHandle*& handle, Failure& f) {
  if (const auto known = kernels_by_name.find(name); known != kernels_by_name.end()) {
    handle = &known->second;
    return true;
  }
  KernelHandle found;
  for (const CUmodule module : given)
    if (!found.function && !find_in(module, name, found.function, f)) return false;
  if (given.empty() && !find_in_images(name, found.function, f)) return false;
  if (!found.function)
    return refuse(f, int(ErrorKind::device), "report this: the build is broken",
                  "there is no CUDA kernel %s in this "
                  "build",
                  name);
  handle = &kernels_by_name.emplace(name, found).first->second;
  return true;
}

}  // namespace rille::device::cuda
