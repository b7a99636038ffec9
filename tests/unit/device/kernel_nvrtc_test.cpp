// The sample kernels for GPUs: compiled by NVRTC where there is one, from the sources that run on the CPU.
#include <catch2/catch.hpp>

#include <filesystem>

#include "runtime/device/kernel_build.hpp"
#include "runtime/device/kernel_files.hpp"
#include "tests/unit/device/kernel_samples.hpp"

namespace rille::device {

namespace {

bool missing() {
  if (why_no_nvrtc().empty()) return false;
  WARN("skipped: " << why_no_nvrtc());
  return true;
}

Result<Cubin> compile(std::string_view text, const std::string& name, const std::string& arch,
                      KernelOptions options = {}) {
  RILLE_TRY(const auto source, read_kernel_source(text));
  options.name = name;
  RILLE_TRY(const auto chosen, choose_kernel(source, options));
  return build_for_cuda(text, source, chosen, options, arch);
}

std::string types(const Cubin& c) {
  std::string out;
  for (const auto& p : c.parameters) out += (out.empty() ? "" : ", ") + describe(p);
  return out;
}

}  // namespace

TEST_CASE("the samples become cubins for every architecture", "[unit][kernel]") {
  if (missing()) return;
  struct { const char* text; const char* name; const char* types; } samples[] = {
      {samples::saxpy, "", "int, float, const float*, float*"},
      {samples::block_sum, "block_sum<float>", "int, const float*, float*"},
      {samples::block_sum, "block_sum<double>", "int, const double*, double*"},
      {samples::tiled_matmul, "", "int, int, int, const float*, const float*, float*"},
      {samples::histogram, "", "int, const unsigned char*, unsigned int*"},
      {samples::warp_scan, "", "const int*, int*"},
      {samples::stencil, "", "int, int, const float*, float*"}};
  for (const char* arch : {"sm_75", "sm_80", "sm_90a", "sm_120"}) {
    for (const auto& s : samples) {
      auto c = compile(s.text, s.name, arch);
      if (!c) FAIL(c.error().summary());
      CHECK(c->image.substr(1, 3) == "ELF");
      CHECK(types(*c) == s.types);
      CHECK_FALSE(c->cached);
    }
  }
}

TEST_CASE("half types, headers and cooperative groups compile for GPUs as for the CPU", "[unit][kernel]") {
  if (missing()) return;
  auto c = compile(R"(
    #include <cuda_fp16.h>
    #include <cuda_bf16.h>
    #include <cooperative_groups.h>
    #include <stdint.h>
    #include <math.h>
    namespace cg = cooperative_groups;
    extern "C" __global__ void k(const __half* h, __nv_bfloat16* b, float4 v, uint32_t n, const float2* in) {
      auto block = cg::this_thread_block();
      auto tile = cg::tiled_partition<32>(block);
      uint32_t i = threadIdx.x;
      if (i < n) b[i] = __float2bfloat16(__half2float(h[i]) + tile.shfl(v.x, 0) + in[i].y);
      block.sync();
    })", "", "sm_90a");
  if (!c) FAIL(c.error().summary());
  CHECK(c->lowered_name == "k");
  CHECK(types(*c) == "const __half*, __nv_bfloat16*, float4, unsigned int, const float2*");
}

TEST_CASE("a cubin is kept on disk, and compiled anew when the file is torn", "[unit][kernel]") {
  if (missing()) return;
  const auto cache = WorkDirectory::create(std::filesystem::temp_directory_path().string());
  REQUIRE(cache.ok());
  KernelOptions options;
  options.cache = cache->path();
  const auto first = compile(samples::block_sum, "block_sum<float>", "sm_80", options);
  const auto again = compile(samples::block_sum, "block_sum<float>", "sm_80", options);
  REQUIRE((first.ok() && again.ok()));
  CHECK_FALSE(first->cached);
  CHECK(again->cached);
  CHECK(again->image == first->image);
  CHECK(again->lowered_name == first->lowered_name);
  CHECK(types(*again) == types(*first));
  CHECK_FALSE(compile(samples::block_sum, "block_sum<float>", "sm_90", options)->cached);
  options.defines = {{"X", "1"}};
  CHECK_FALSE(compile(samples::block_sum, "block_sum<float>", "sm_80", options)->cached);
  for (const auto& entry : std::filesystem::directory_iterator(cache->path()))
    REQUIRE(write_small_file(entry.path().string(), "torn").ok());
  const auto anew = compile(samples::block_sum, "block_sum<float>", "sm_80", options);
  REQUIRE(anew.ok());
  CHECK_FALSE(anew->cached);
}

TEST_CASE("what NVRTC says is told with the script's line", "[unit][kernel]") {
  if (missing()) return;
  KernelOptions options;
  options.file = "train.lua";
  options.line = 20;
  const auto e = compile("__global__ void k(float* x) {\n  x[0] = y;\n}\n", "", "sm_80", options).error();
  CHECK(e.kind == ErrorKind::invalid);
  CHECK(e.code == "kernel_compile");
  CHECK(e.message.find("train.lua:21: kernel k: identifier \"y\" is undefined") == 0);
  CHECK(e.hint.find("x[0] = y;") == 0);
  const std::string macro = "#define K(n) __global__ void n(float* x) { x[0] = 1; }\nK(f)\n";
  CHECK(types(*compile(macro, "f", "sm_80")) == "float*");
  CHECK(compile(macro, "g", "sm_80", options).error().message ==
        "train.lua:20: kernel g: the source makes no kernel of that name");
  CHECK(compile("\n__global__ int k() { return 1; }", "", "sm_80", options).error().message ==
        "train.lua:21: kernel k: it returns int; a kernel returns nothing");
  const auto unknown = compile("__global__ void k() {}", "", "sm_9000").error();
  CHECK(unknown.kind == ErrorKind::device);  // as of a GPU that is newer than NVRTC
  CHECK(unknown.message.find("compiles nothing for sm_9000") != std::string::npos);
}

}  // namespace rille::device
