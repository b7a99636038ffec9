// The kernels that CUDA's groups are generated as, by the real NVRTC: the test unit.tensor.nvrtc.
#include <cstdlib>
#include <set>

#include "every_function.hpp"
#include "programs.hpp"
#include "runtime/compute/device/group.hpp"
#include "runtime/compute/device/kernel_build.hpp"
#include "runtime/compute/device/nvrtc_library.hpp"
#include "runtime/compute/tensor/record.hpp"

namespace rille::tensor {
namespace {

std::set<std::string>* sources = nullptr;  // of the groups that ran; the lane fills it

void noted(const Op& op, const kernels::Call& c) {
  if (op.id == OpId::fused) sources->insert(device::group_source(static_cast<const device::Group&>(*c.payload), c));
  op.kernel(c);
}

}  // namespace

TEST_CASE("groups become cubins for every architecture", "[.nvrtc]") {
  REQUIRE(device::why_no_nvrtc() == "");
  std::set<std::string> all;
  auto g = new_graph();
  sources = &all;
  g->impl().queue->instead = &noted;
  for (const DType dtype : {DType::bf16}) {
    const auto x = get(rand(*g, dims({40}), dtype));
    auto leaf = get(full(*g, dims({40}), 0.0, dtype));
    get(leaf.set_requires_grad(true));
    Compiled c(g);
    replayed(c, {x}, [&](const std::vector<Tensor>& in) { return with_gradients(in[0], leaf); });
    get(g->synchronize_blocking());
  }
  g->impl().queue->instead = nullptr;
  CHECK(all.size() > 8);
  ::setenv("RILLE_CUDA_WITHOUT", "headers", 1);  // as where only libnvrtc lies
  for (const auto& source : all) {
    for (const char* arch : {"sm_75", "sm_90"}) {
      const auto built = device::build_group(source, arch, "");
      if (!built) FAIL("without headers: " << built.error().summary() << "\n" << built.error().hint);
      CHECK(built->image.substr(1, 3) == "ELF");
    }
  }
  ::unsetenv("RILLE_CUDA_WITHOUT");
  int n = 0;
  const char* const archs[] = {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"};
  for (const auto& source : all) {  // each for one, and the first for all
    for (const char* arch : archs) {
      if (n > 0 && arch != archs[n % 7]) continue;
      const auto built = device::build_group(source, arch, "");
      if (!built) FAIL(built.error().summary() << "\n" << built.error().hint);
      CHECK(built->image.substr(1, 3) == "ELF");
      CHECK(built->lowered_name == device::group_kernel);
    }
    ++n;
  }
}

}  // namespace rille::tensor
