// Rille's own kernels by the real NVRTC, as a GPU compiles them that no image fits. It needs no GPU. Each is a test of
// its own (tests/support/CMakeLists.txt): the others of this program have a stand-in in its place.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string_view>
#include <thread>

#include "runtime/compute/device/cuda_kernels.hpp"
#include "runtime/compute/device/nvrtc_library.hpp"

namespace rille::test {

namespace {

constexpr int architecture = 90;

device::CudaSources sources() {
  ::setenv("RILLE_CUDA_PLUGIN", RILLE_TEST_CUDA_PLUGIN, 1);
  auto all = device::CudaSources::of_plugin();
  if (!all) FAIL(all.error().summary());
  return std::move(*all);
}

bool is_cubin(const std::string& image) {
  return image.starts_with(
      "\x7f"
      "ELF");
}

}  // namespace

TEST_CASE("the plug-in has every source of its kernels, whole") {
  const auto all = sources();
  std::size_t kernels = 0;
  for (const auto& s : all.files) {
    INFO(s.name);
    const auto file = std::filesystem::path(RILLE_TEST_ROOT) / s.name;
    CHECK(std::filesystem::file_size(file) == s.bytes);
    CHECK(s.text[s.bytes] == 0);
    CHECK(std::string_view(s.text).size() == s.bytes);
    kernels += s.kernels;
  }
  CHECK(kernels > 10);
  CHECK(kernels < all.files.size());
}

TEST_CASE("an image serves the later GPUs of its generation, PTX all later ones") {
  device::cuda::Kernels k;
  k.cuda = 13000;
  k.architectures[0] = 80;
  CHECK(device::cuda::has_image(k, 80));
  CHECK(device::cuda::has_image(k, 89));
  CHECK_FALSE(device::cuda::has_image(k, 75));
  CHECK_FALSE(device::cuda::has_image(k, 90));
  k.ptx = 90;
  CHECK(device::cuda::has_image(k, 120));
  CHECK_FALSE(device::cuda::has_image(k, 75));
}

TEST_CASE("some of Rille's kernels compile by NVRTC", "[.nvrtc]") {
  const auto all = sources();
  REQUIRE(device::why_no_nvrtc() == "");
  const std::set<std::string_view> some = {"kernels/cuda/rope.cu", "kernels/cuda/matmul.cu",
                                           "kernels/cuda/attention_tensor.cu"};
  std::size_t compiled = 0;
  for (std::size_t i = 0; i < all.files.size(); ++i) {
    if (!some.count(all.files[i].name)) continue;
    const auto image = device::compile_kernels_of(all, i, architecture);
    if (!image) FAIL(image.error().summary() << " " << image.error().hint);
    CHECK(is_cubin(*image));
    ++compiled;
  }
  CHECK(compiled == some.size());
}

TEST_CASE("all of Rille's kernels compile by NVRTC", "[.nvrtc_all]") {
  const auto all = sources();
  REQUIRE(device::why_no_nvrtc() == "");
  const auto images = device::compile_kernels(all, architecture, "", int(std::thread::hardware_concurrency()));
  if (!images) FAIL(images.error().summary() << " " << images.error().hint);
  for (const auto& image : *images) CHECK(is_cubin(image));
}

}  // namespace rille::test
