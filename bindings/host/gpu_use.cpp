#include "bindings/host/gpu_use.hpp"

#include <fmt/format.h>

#include "runtime/compute/device/cuda_kernels.hpp"
#include "runtime/core/base/build_id.hpp"
#include "runtime/core/base/id.hpp"
#include "runtime/core/base/places.hpp"
#include "runtime/core/store/file.hpp"
#include "runtime/workflow/provider/gpu_facts.hpp"

namespace rille::host {

namespace {

constexpr int oldest = 75;
constexpr const char* rent_anyway = "to rent it for your own programs (box:exec), pass cuda = false";

Error refused(std::string message, const std::string& mend) {
  Error e = make_error(ErrorKind::config, std::move(message), fmt::format("{}; {}", mend, rent_anyway));
  e.code = "gpu_unusable";
  return e;
}

// Tells the user how to build the missing kernel images. In a bundle nothing can be built, so a new bundle is needed.
std::string build_images(int capability) {
  const std::string command = fmt::format("`./bootstrap cuda{}`", capability ? fmt::format(" {}", capability) : "");
  if (bundle_folder().empty()) return command + " builds them";
  return fmt::format("in a checkout of Rille {} and then `./bootstrap bundle` make a bundle with them", command);
}

}  // namespace

std::string install_identity() {
  constexpr std::int64_t bytes_max = 1 << 30;
  const std::string file = device::cuda_plugin_beside();
  const auto plugin = store::read_file(file, bytes_max);
  return plugin ? fmt::format("{}-{}", build_id(), derive_hex({"cuda", *plugin}, 8)) : std::string(build_id());
}

std::optional<Error> why_no_use_of_gpu(const lease::GpuAsked& asked) {
  if (!asked.vendor.empty() && asked.vendor != "nvidia") return std::nullopt;
  const provider::GpuFacts* const facts = provider::gpu_facts(asked.model, asked.memory_bytes);
  if (facts ? facts->capability == 0 : asked.vendor.empty()) return std::nullopt;
  const int capability = facts ? facts->capability : 0;
  const std::string gpu = capability ? fmt::format("{} (sm_{})", asked.model, capability) : asked.model;
  const auto kernels = device::cuda_kernels();
  if (!kernels)
    return refused(fmt::format("this build of Rille cannot compute on a {}: {}", gpu, kernels.error().message),
                   "`./bootstrap build` makes it beside the command");
  if (capability && capability < oldest)
    return refused(
        fmt::format("Rille's CUDA part cannot compute on a {}: it supports only sm_{} and newer", gpu, oldest),
        "choose a newer GPU");
  const bool fits = capability ? device::cuda::has_image(*kernels, capability) : kernels->cuda != 0;
  if (fits || (asked.owned && kernels->sources)) return std::nullopt;
  return refused(fmt::format("this build of Rille has no kernels for a {}: {}", gpu, device::describe(*kernels)),
                 build_images(capability));
}

}  // namespace rille::host
