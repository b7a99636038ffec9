// The sample kernels for GPUs: compiled by the real NVRTC, from the sources that run on the CPU. No GPU is needed. The
// test unit.device.nvrtc runs these cases, with the NVRTC of tests/requirements-nvrtc.txt without a toolkit.
#include <catch2/catch.hpp>
#include <filesystem>

#include "runtime/compute/device/kernel_build.hpp"
#include "runtime/compute/device/kernel_files.hpp"
#include "runtime/compute/device/nvrtc_library.hpp"
#include "tests/unit/device/kernel_samples.hpp"

namespace rille::device {

namespace {

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

TEST_CASE("the samples become cubins for every architecture", "[.nvrtc]") {
  REQUIRE(why_no_nvrtc() == "");
  struct {
    const char* text;
    const char* name;
    const char* types;
  } samples[] = {{samples::saxpy, "", "int, float, const float*, float*"},
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

TEST_CASE("half types, headers and cooperative groups compile for GPUs as for the CPU", "[.nvrtc]") {
  REQUIRE(why_no_nvrtc() == "");
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
    })",
                   "", "sm_90a");
  if (!c) FAIL(c.error().summary());
  CHECK(c->lowered_name == "k");
  CHECK(types(*c) == "const __half*, __nv_bfloat16*, float4, unsigned int, const float2*");
}

TEST_CASE("a cubin is kept on disk, and compiled anew when the file is torn", "[.nvrtc]") {
  REQUIRE(why_no_nvrtc() == "");
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

TEST_CASE("NVRTC's errors name the script's line", "[.nvrtc]") {
  REQUIRE(why_no_nvrtc() == "");
  KernelOptions options;
  options.file = "train.lua";
  options.line = 20;
  const auto e = compile("__global__ void k(float* x) {\n  x[0] = y;\n}\n", "", "sm_80", options).error();
  CHECK(e.kind == ErrorKind::invalid);
  CHECK(e.code == "kernel_compile");
  CHECK(e.message.find("train.lua:21: kernel k: identifier \"y\" is undefined") == 0);
  CHECK(e.hint.find("x[0] = y;") == 0);
  const auto misspelt = compile("__global__ void k(flaot* x) {\n  x[0] = 1;\n}\n", "", "sm_80", options).error();
  CHECK(misspelt.message.find("train.lua:20: kernel k: identifier \"flaot\" is undefined") == 0);
  const std::string macro = "#define K(n) __global__ void n(float* x) { x[0] = 1; }\nK(f)\n";
  CHECK(types(*compile(macro, "f", "sm_80")) == "float*");
  CHECK(compile(macro, "g", "sm_80", options).error().message ==
        "train.lua:20: kernel g: the source makes no kernel of that name");
  CHECK(compile("\n__global__ int k() { return 1; }", "", "sm_80", options).error().message ==
        "train.lua:21: kernel k: it returns int; a kernel returns nothing");
  const auto unknown = compile("__global__ void k() {}", "", "sm_9000").error();
  CHECK(unknown.kind == ErrorKind::device);  // as of a GPU that is newer than NVRTC
  CHECK(unknown.message.find("cannot compile for sm_9000") != std::string::npos);
}

TEST_CASE("NVRTC gives the parameter types of extern C kernels", "[.nvrtc]") {
  REQUIRE(why_no_nvrtc() == "");
  const auto are = [](const char* text, const char* wanted, KernelOptions options = {}) {
    const auto c = compile(text, options.name, "sm_80", options);
    if (!c) FAIL(c.error().summary());
    CHECK(types(*c) == wanted);
  };
  are("typedef float real; extern \"C\" __global__ void f(real* x, const real* y, real a) {}",
      "float*, const float*, float");
  are("#define REAL double\nextern \"C\" {\n__global__ void f(REAL x[], const REAL a) {}\n}", "double*, double");
  are("using v = float4; extern \"C\" __global__ void f(v* x, v a, void* b, size_t n) {}",
      "float4*, float4, void*, unsigned long long");
  are("extern \"C\" __global__ void f() {} // without an end of line", "");
  are("namespace q { struct P { int a; }; extern \"C\" __global__ void f(const P* x) {} }", "const a type of its own*");
  are("#define MAKE(n) extern \"C\" __global__ void n(float* x) { x[0] = 1; }\nMAKE(f)", "float*", [] {
    KernelOptions o;
    o.name = "f";
    return o;
  }());
  are("template <class T> struct Wide { typedef double type; };\n"
      "template <class T> __global__ void f(typename Wide<T>::type* x, decltype(T() + 1) a) {}",
      "double*, float", [] {
        KernelOptions o;
        o.name = "f<float>";
        return o;
      }());
  are("static __global__ void f(short* x) {} namespace q { __global__ void g(const short* y) {} }", "const short*", [] {
    KernelOptions o;
    o.name = "q::g";
    return o;
  }());
  KernelOptions options;  // no name of ours is a macro of theirs
  options.defines = {{"REAL", "float"}, {"N", "4"}, {"sizes", "3"}, {"P", "8"}};
  are("extern \"C\" __global__ void f(REAL* x) { x[N] = sizes; }", "float*", options);
  options.defines.clear();
  options.flags = {"--std=c++03"};  // and where we cannot ask, the text has the word
  const char* const old = "typedef float real; struct P { int a; }; extern \"C\" __global__ void f(float* x, %P* y) {}";
  const auto with = [&](const std::string& type) {
    std::string text = old;
    return compile(text.replace(text.find("%P"), 2, type), "", "sm_80", options);
  };
  CHECK(types(*with("P")) == "float*, a type of its own*");
  CHECK(types(*with("void")) == "float*, void*");
  CHECK(with("real").error().message ==
        "kernel:1: kernel f: the meaning of the type real* is not known in the parameter real* y");
}

TEST_CASE("structures by value have the compiler's size", "[.nvrtc]") {
  REQUIRE(why_no_nvrtc() == "");
  const auto sizes = [](const std::string& text, const std::string& name) {
    const auto c = compile(text, name, "sm_80");
    if (!c) FAIL(c.error().summary());
    std::string out;
    for (const auto& p : c->parameters) out += (p.pointer ? "*" : std::to_string(p.size)) + " ";
    return out;
  };
  const std::string types =
      "struct P { float a; double c; }; enum E : short { A }; "
      "template <class T> struct V { T a, b, c; };\n";
  CHECK(sizes(types + "extern \"C\" __global__ void f(P* x, P n, const E e, V<const float*> v) {}", "") ==
        "* 16 2 24 ");
  CHECK(sizes(types + "__global__ void f(P* x, P n, const E e, V<float> v, float2 w) {}", "") == "* 16 2 12 8 ");
  CHECK(sizes(types + "template <class T> __global__ void f(V<T> v, V<T>* w, T* y) {}", "f<double>") == "24 * * ");
  const auto c = compile(types + "__global__ void f(V<const float*>* x) {}", "", "sm_80");
  REQUIRE(c.ok());
  CHECK(c->parameters[0].constant == 0);  // what it points to is written
}

TEST_CASE("constants are found through NVRTC, and not in comments", "[.nvrtc]") {
  REQUIRE(why_no_nvrtc() == "");
  const auto cache = WorkDirectory::create(std::filesystem::temp_directory_path().string());
  REQUIRE(cache.ok());
  KernelOptions options;
  options.cache = cache->path();
  options.file = "train.lua";
  options.line = 20;
  options.constants = {{"c", {1, 2, 3, 4}}};
  const auto is = [&](const std::string& text, unsigned element, std::size_t bytes, const std::string& symbol = "c") {
    for (const bool cached : {false, true}) {
      const auto c = compile(text + "\nextern \"C\" __global__ void f(float* x) {}", "", "sm_80", options);
      if (!c) FAIL(c.error().summary());
      CHECK(c->cached == cached);
      CHECK(types(*c) == "float*");
      REQUIRE(c->constants.size() == 1);
      CHECK(c->constants[0].element == element);
      CHECK(c->constants[0].bytes == bytes);
      CHECK(c->constants[0].symbol == symbol);
    }
  };
  is("// once: __constant__ int c[4];\n__constant__ float c[4];", rille_abi::f32, 16);
  is("#ifdef DBL\n__constant__ double c[4];\n#else\n__constant__ float c[4];\n#endif", rille_abi::f32, 16);
  is("typedef double real; __constant__ float a[2]; static __constant__ real b, c[2][2];", rille_abi::f64, 32);
  is("#define REAL int\nconst REAL __constant__ c[4] = {1, 2, 3, 4};", rille_abi::i32, 16);
  is("namespace q { __constant__ short c[4]; }\nusing q::c;", rille_abi::i16, 8, "_ZN1q1cE");
  is("struct P { int a; }; __constant__ P c;", rille_abi::other, 4);
  is("__constant__ float* c;", rille_abi::other, 8);
  const auto none = compile("namespace q { __constant__ float c[4]; }\n__global__ void f() {}", "", "sm_80", options);
  REQUIRE_FALSE(none.ok());
  CHECK(none.error().message == "train.lua:20: kernel f: the source has no __constant__ c");
  CHECK(none.error().hint == "if the constant is in a namespace, add: using its_namespace::c;");
  CHECK(none.error().code == "kernel_compile");
  const auto wrong = compile("__global__ void f(floot* x) {}\n__constant__ float c[4];", "", "sm_80", options).error();
  CHECK(wrong.message.find("train.lua:20: kernel f: ") == 0);
  CHECK(wrong.hint.find("rille") == std::string::npos);
}

}  // namespace rille::device
