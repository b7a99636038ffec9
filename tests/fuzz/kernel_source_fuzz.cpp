// Any text is read or refused as invalid; what is read keeps its lines, and its kernels have names and known places.
#include <algorithm>

#include "runtime/compute/device/kernel_source.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/unit/device/kernel_samples.hpp"

using namespace rille;
using namespace rille::device;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto source = read_kernel_source(text);
  const auto types = parameter_types_of(text);
  fuzz_check(types.size() <= size + 1, "no more parameters than characters");
  fuzz_check(describe(parameter_of(text)).size() < 40, "a type has a short name");
  if (!source) {
    fuzz_check(source.error().kind == ErrorKind::invalid, "a refusal is an invalid error");
    return 0;
  }
  const auto lines = std::count(text.begin(), text.end(), '\n');
  fuzz_check(std::count(source->cpu_text.begin(), source->cpu_text.end(), '\n') == lines, "no line is lost");
  for (const auto& k : source->kernels) {
    const auto space = k.name.rfind("::");
    const std::string bare = space == k.name.npos ? k.name : k.name.substr(space + 2);  // of a::scale, scale
    fuzz_check(!bare.empty() && text.find(bare) != text.npos, "a kernel's name stands in the text");
    fuzz_check(k.line >= 1 && k.line <= lines + 1, "a kernel's line is one of the text");
    fuzz_check(source->find(k.name) == &k, "each name once");
    for (const auto& p : k.parameters) fuzz_check(parameter_of(p.type).lanes <= 4, "at most four lanes");
  }
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  return {samples::saxpy,
          samples::block_sum,
          samples::tiled_matmul,
          samples::histogram,
          samples::warp_scan,
          samples::stencil,
          "extern \"C\" { __global__ void __launch_bounds__(1) k(std::pair<int, float> p[], ...); }",
          "namespace a { extern __shared__ __align__(16) volatile float s[]; } template <class T = A<B>> __global__",
          "#define K(T) R\"x(\")x\" '\\'' 1'000 /* */ //\n",
          "void k<float, (int)4>(float*, float const*, int (*)(int))"};
}

std::vector<std::string> fuzz_words() {
  return {"__global__", "extern", "__shared__", "template",   "<",  ">",          "(",  ")",           "[]",
          "{",          "}",      ";",          "blockIdx.x", "*",  "blockDim.x", "+",  "threadIdx.x", "const",
          "float",      "\"",     "R\"(",       "/*",         "*/", "\n",         "\\", "operator()"};
}
