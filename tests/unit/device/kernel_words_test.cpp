// Words of CUDA C++ that sources take for granted: through the CPU's shim, and each by NVRTC to a cubin, with the
// toolkit's headers and without them. unit.device.nvrtc runs what needs NVRTC.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>

#include "runtime/compute/device/kernel.hpp"
#include "runtime/compute/device/nvrtc_library.hpp"

namespace rille::device {

namespace {

struct NoHeaders {
  NoHeaders() { ::setenv("RILLE_CUDA_WITHOUT", "headers", 1); }
  ~NoHeaders() { ::unsetenv("RILLE_CUDA_WITHOUT"); }
};

// Each is a piece of a kernel's body, and leaves `f` at what stands behind it: o, of floats, and i, of ints, hold 1.
struct Words {
  const char* text;
  float wanted;
};
const Words words[] = {
    {"uint32_t a = 3; uint8_t b = 255; int64_t c = INT32_MAX; f = a + b + (c == 2147483647ll);", 259},
    {"f = INFINITY > FLT_MAX && !(NAN == NAN) && HUGE_VALF == INFINITY ? 1 : 0;", 1},
    {"f = M_PI > 3.14 && M_PI < 3.15 && 2 * M_PI_2 == M_PI && CUDART_INF_F == INFINITY;", 1},
    {"f = INT_MAX > SHRT_MAX && UINT_MAX > USHRT_MAX && CHAR_BIT == 8 && LLONG_MIN < 0 && SIZE_MAX == ULLONG_MAX;", 1},
    {"float* p = NULL; uint u = 2; ushort s = 3; uchar c = 4; f = p == nullptr ? u + s + c : 0;", 9},
    {"int b[4]; memset(b, 0, sizeof b); memcpy(b + 1, i, 4); f = b[0] + b[1] + b[2];", 1},
    {"float2 v; memcpy(&v, o, 8); f = v.x + v.y;", 2},
    {"f = __ldg(o) + __ldca(o) + __ldcg(o) + __ldcs(o) + __ldcv(o) + __ldg((const float4*)o).w;", 6},
    {"__half h = __float2half(1.5f); f = __half2float(h);", 1.5f},
    {"__nv_bfloat16 h = __float2bfloat16(1.5f); f = __bfloat162float(h);", 1.5f},
    {"half h = 2.5f; h += half(1); h = h * h; ++h; h = __hmax(h, half(3.0)); f = (float)-h;", -13.25f},
    {"half2 v = __floats2half2_rn(1.0f, 2.0f); v = __hfma2(v, v, v); v += make_half2(v.x, v.y); f = __low2float(v) + "
     "__high2float(v) + __half2float(__high2half(__hneg2(v)));",
     4},
    {"nv_bfloat162 v = __float2bfloat162_rn(3.0f); v = v * v - v; f = __bfloat1622float2(v).y;", 6},
    {"half h = __ushort_as_half((unsigned short)0x3c00); f = __half2int_rn(h) + __half_as_ushort(h) - 0x3c00;", 1},
    {"half h = 1.0f; h = __shfl_xor_sync(0xffffffffu, h, 1); f = (float)hsqrt(h) + (float)hexp(half(0.0f));", 2},
    {"f = (float)__float2half_rz(1.9999f) < 2.0f && (float)__float2half_rn(1.9999f) == 2.0f;", 1},
    {"f = __popc(7) + __clz(1) + __ffs(8) + (__brev(1u) == 0x80000000u) + (__brevll(1ull) == 1ull << 63);", 40},
    {"f = __byte_perm(0x03020100, 0x07060504, 0x7531) == 0x07050301 ? __sad(3, 5, 1) + __usad(5u, 3u, 1u) : 0;", 6},
    {"f = __hadd(3, 4) + __rhadd(3, 4) + __uhadd(3u, 4u) + __mul24(3, 4) + __dp4a(0x01010101, 0x02020202, 1);", 31},
    {"f = __mulhi(1 << 30, 8) + __umulhi(1u << 31, 4u) + (float)__mul64hi(1ll << 62, 8ll) + "
     "__funnelshift_lc(1u, 0u, 1u) + __funnelshift_rc(2u, 0u, 33u);",
     6},
    {"f = min(1, 2) + max(1.0f, 2.0) + min((size_t)1, (size_t)2) + max(1ll, 2ull) + fminf(1.0f, 2.0f);", 7},
    {"f = __float2int_rz(1.9f) + __double2int_rn(1.5) + __float2ll_rn(2.5f) + (float)__int2double_rn(3) + "
     "(__double2hiint(1.0) == 0x3ff00000) + __double2loint(__hiloint2double(0, 5));",
     14},
    {"float s, c; sincosf(0.0f, &s, &c); f = s + c; __sincosf(0.0f, &s, &c); f += c; sincospif(0.5f, &s, &c); f += s;",
     3},
    {"f = rsqrtf(4.0f) + __fmaf_rn(1.0f, 2.0f, 3.0f) + __fadd_rn(1.0f, 1.0f) + rhypotf(3.0f, 4.0f) * 5.0f + "
     "(float)rcbrt(8.0) + norm4df(1.0f, 1.0f, 1.0f, 1.0f) + __frcp_rn(2.0f);",
     11.5f},
    {"f = fabsf(erff(erfinvf(0.5f)) - 0.5f) < 1e-6f && fabs(erf(erfinv(-0.9)) + 0.9) < 1e-12 && "
     "isinf(erfinvf(1.0f)) && fabsf(normcdfinvf(0.5f)) < 1e-6f;",
     1},
    {"f = llrintf(2.5f) + lroundf(2.5f) + (float)llround(1.5) + scalbnf(1.0f, 2) + labs(-1l) + abs(-1) + "
     "(isnan(nanf(\"\")) ? 1 : 0);",
     14},
    {"atomicExch(i + 1, 5); atomicCAS(i + 1, 5, 7); atomicMin(i + 1, 6); atomicMax(i + 1, 9); "
     "atomicAdd_block(i + 1, 1); atomicSub_system(i + 1, 2); f = i[1]; __syncthreads(); i[1] = 1; __syncthreads();",
     8},
    {"unsigned short* s = (unsigned short*)(i + 2); atomicCAS(s, (unsigned short)1, (unsigned short)4); f = s[0]; "
     "__syncthreads(); i[2] = 1; __syncthreads();",
     4},
    {"f = __shfl_sync(~0u, 1, 0) + __shfl_up_sync(~0u, 1.0f, 1) + __shfl_down_sync(~0u, 1.0, 1) + "
     "__shfl_xor_sync(~0u, 1ll, 1, 16);",
     4},
    {"f = __any_sync(~0u, 1) + __all_sync(~0u, 1) + (__ballot_sync(~0u, 1) == ~0u) + "
     "(__match_any_sync(~0u, 3) == ~0u);",
     4},
    {"__syncwarp(); __threadfence(); f = clock64() != 0 && warpSize == 32;", 1},
    {"float4 v = make_float4(1, 2, 3, 4); int2 q = make_int2(5, 6); uchar4 u = make_uchar4(1, 2, 3, 4); dim3 d(2, 3); "
     "f = v.w + q.y + u.z + d.y * d.z;",
     16},
    {"__builtin_assume(i[0] == 1); f = twice(four()) + table[1] + C + K[1];", 21.5f},
};

const char* const front =
    "int twice(int x) { return 2 * x; }\n"
    "constexpr int four() { return 4; }\n"
    "constexpr float table[3] = {1, 2, 3};\n"
    "const float C = 2.5f;\n"
    "__constant__ float K[2] = {8, 9};\n"
    "template <class T> T square(T x) { return x * x; }\n"
    "struct Point { float x; float length() const { return sqrtf(x * x); } };\n";

std::string kernel_of(const std::string& body, const char* head = "") {
  return std::string(head) + "__global__ void __launch_bounds__(32) k(float* __restrict__ o, int* i, float* out) {\n" +
         body + "}\n";
}

Result<Cubin> cubin(const std::string& text, const char* arch, KernelOptions options = {}) {
  RILLE_TRY(const auto source, read_kernel_source(text));
  return build_for_cuda(text, source, "k", options, arch);
}

}  // namespace

TEST_CASE("words that sources take for granted do on the CPU what CUDA says", "[unit][kernel]") {
  std::string body;
  std::size_t n = 0;
  for (const auto& w : words) {
    body +=
        std::string("{ float f = -1; ") + w.text + " if (threadIdx.x == 0) out[" + std::to_string(n++) + "] = f; }\n";
  }
  for (const bool checked : {false, true}) {
    KernelOptions options;
    options.checked = checked;
    options.file = "words.lua";
    const auto k = Kernel::compile(kernel_of(body, front), options);
    if (!k) FAIL(k.error().summary() << "\n" << k.error().hint);
    std::vector<float> o(4, 1.0f), out(n);
    std::vector<int> i(4, 1);
    LaunchShape shape;
    shape.block[0] = 32;
    std::vector<LaunchArgument> arguments(3);
    arguments[0].pointer = o.data(), arguments[0].bytes = 16;
    arguments[1].pointer = i.data(), arguments[1].bytes = 16;
    arguments[2].pointer = out.data(), arguments[2].bytes = 4 * n;
    std::string said;
    const auto ran = (*k)->run(shape, arguments, said);
    if (!ran) FAIL(ran.error().summary());
    for (std::size_t at = 0; at < n; ++at) {
      INFO(words[at].text);
      CHECK(out[at] == Approx(words[at].wanted).epsilon(1e-6));
    }
  }
}

TEST_CASE("memset and memcpy are looked at in checked mode", "[unit][kernel]") {
  KernelOptions options;
  options.checked = true;
  const auto k = Kernel::compile("__global__ void k(float* x, int n) { memset(x, 0, n); }", options);
  REQUIRE(k.ok());
  std::vector<float> x(4, 1.0f);
  std::vector<LaunchArgument> arguments(2);
  arguments[0].pointer = x.data(), arguments[0].bytes = 16;
  std::string said;
  const auto run = [&](int bytes) {
    std::memcpy(arguments[1].value, &bytes, 4);
    return (*k)->run({}, arguments, said);
  };
  CHECK(run(20).error().message.find("writes x[4], which has 4 elements") != std::string::npos);
  CHECK(x == std::vector<float>(4, 1.0f));
  REQUIRE(run(16).ok());
  CHECK(x == std::vector<float>(4, 0.0f));
}

TEST_CASE("words that sources take for granted become cubins, each by itself", "[.nvrtc]") {
  REQUIRE(why_no_nvrtc() == "");
  for (const auto& w : words) {
    const std::string text = kernel_of(std::string("float f = -1; ") + w.text + " out[threadIdx.x] = f; ", front);
    auto c = cubin(text, "sm_90");
    if (!c) FAIL(w.text << "\n" << c.error().message << "\n" << c.error().hint);
    CHECK(c->image.substr(1, 3) == "ELF");
  }
}

TEST_CASE("without the toolkit's headers half types are Rille's own", "[.nvrtc]") {
  REQUIRE(why_no_nvrtc() == "");
  const NoHeaders hidden;
  std::string body;
  for (const auto& w : words) body += std::string("{ float f = -1; ") + w.text + " out[threadIdx.x] += f; }\n";
  for (const char* arch : {"sm_75", "sm_80", "sm_90"}) {
    for (const char* head : {"",
                             "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <math_constants.h>\n"
                             "#include <vector_types.h>\n"}) {
      auto c = cubin(kernel_of(body, (std::string(head) + front).c_str()), arch);
      if (!c) FAIL(arch << "\n" << c.error().message << "\n" << c.error().hint);
      CHECK(c->image.substr(1, 3) == "ELF");
    }
  }
  // Types keep their own names, so that launches know them.
  const auto c = cubin(
      "__global__ void k(const __half* h, __nv_bfloat16* b, half2 v, const float* x) {\n"
      "  h += 1; atomicAdd(b, __nv_bfloat16(1)); }",
      "sm_75");
  if (!c) FAIL(c.error().hint);
  REQUIRE(c->parameters.size() == 4);
  CHECK(describe(c->parameters[0]) == "const __half*");
  CHECK(describe(c->parameters[1]) == "__nv_bfloat16*");
}

TEST_CASE("a source that has the words itself is taken as it is, and lines stay right", "[.nvrtc]") {
  REQUIRE(why_no_nvrtc() == "");
  CHECK(cubin("typedef unsigned long uint64_t;\n__global__ void k(uint64_t* x) { x[0] = 1; }", "sm_90").ok());
  CHECK(cubin("#include <stdint.h>\n#include <math.h>\n#define M_PI 3.14f\n#define min(a, b) ((a) < (b) ? (a) : (b))\n"
              "__global__ void k(uint64_t* x) { x[0] = min(M_PI, 4); }",
              "sm_90")
            .ok());
  KernelOptions options;
  options.file = "train.lua";
  options.line = 20;
  const auto e =
      cubin("__global__ void k(float* x) {\n  uint32_t a = 1; half h;\n  x[0] = y;\n}\n", "sm_80", options).error();
  CHECK(e.message == "train.lua:22: kernel k: identifier \"y\" is undefined");
  CHECK(e.hint.find("x[0] = y;") == 0);
}

}  // namespace rille::device
