// User kernels on the CPU: the samples against plain loops, what waits, what fails.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <numeric>

#include "runtime/compute/device/kernel.hpp"
#include "runtime/compute/device/kernel_files.hpp"
#include "tests/unit/device/kernel_samples.hpp"

namespace rille::device {

namespace {

// One directory for all cases of this program; the compiler runs once for each kernel.
const std::string& cache() {
  static const WorkDirectory directory = *WorkDirectory::create(std::filesystem::temp_directory_path().string());
  return directory.path();
}

Result<std::shared_ptr<Kernel>> compile(std::string_view source, std::string name = "", bool checked = false) {
  KernelOptions options;
  options.name = std::move(name);
  options.cache = cache();
  options.checked = checked;
  options.apart = std::getenv("RILLE_TEST_APART") != nullptr;  // unit.device.apart
  options.confined = options.apart;
  options.file = "test.lua";
  options.line = 10;
  return Kernel::compile(source, options);
}

std::shared_ptr<Kernel> made(std::string_view source, std::string name = "", bool checked = false) {
  auto k = compile(source, std::move(name), checked);
  if (!k) FAIL(k.error().summary());
  return *k;
}

template <class T>
LaunchArgument value(T v) {
  LaunchArgument a;
  std::memcpy(a.value, &v, sizeof v);
  return a;
}
template <class T>
LaunchArgument array(std::vector<T>& v) {
  LaunchArgument a;
  a.pointer = v.data();
  a.bytes = v.size() * sizeof(T);
  return a;
}
LaunchShape shape(unsigned grid, unsigned block, unsigned shared = 0) {
  LaunchShape s;
  s.grid[0] = grid;
  s.block[0] = block;
  s.shared_bytes = shared;
  return s;
}

std::string run(const Kernel& k, const LaunchShape& s, const std::vector<LaunchArgument>& arguments) {
  std::string said;
  REQUIRE(k.check_shape(s).ok());
  REQUIRE(arguments.size() == k.parameters().size());
  auto r = k.run(s, arguments, said);
  if (!r) FAIL(r.error().summary());
  return said;
}

Error failure(const Kernel& k, const LaunchShape& s, const std::vector<LaunchArgument>& arguments) {
  std::string said;
  auto r = k.run(s, arguments, said);
  REQUIRE_FALSE(r.ok());
  return r.error();
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("saxpy is the plain loop", "[unit][kernel]") {
  const auto k = made(samples::saxpy);
  CHECK(k->signature() == "saxpy(int n, float a, const float* x, float* y)");
  std::vector<float> x(1000), y(1000), want(1000);
  for (int i = 0; i < 1000; ++i) {
    x[i] = float(i) * 0.5f;
    y[i] = float(i % 7);
    want[i] = std::fma(3.0f, x[i], y[i]);
  }
  run(*k, shape(8, 128), {value(1000), value(3.0f), array(x), array(y)});
  CHECK(y == want);
  CHECK(made(samples::saxpy)->cached());
}

TEST_CASE("flat kernels meet each thread once, in one dimension and in more", "[unit][kernel]") {
  const auto k = made(R"(__global__ void k(int w, int* runs) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    atomicAdd(&runs[y * w + x], 1);
  })");
  std::vector<int> runs(3000);
  run(*k, shape(30, 100), {value(0), array(runs)});
  CHECK(runs == std::vector<int>(3000, 1));
  LaunchShape s;
  s.grid[0] = 5;
  s.grid[1] = 3;
  s.block[0] = 20;
  s.block[1] = 10;
  run(*k, s, {value(100), array(runs)});
  CHECK(runs == std::vector<int>(3000, 2));
  // Defines may hide names that distinguish threads.
  KernelOptions options;
  options.cache = cache();
  options.defines = {{"ME", "threadIdx.x"}};
  auto hidden =
      Kernel::compile("__global__ void k(int* x) { x[blockIdx.x * blockDim.x + threadIdx.x] = ME; }", options);
  REQUIRE(hidden.ok());
  std::vector<int> x(64);
  run(**hidden, shape(2, 32), {array(x)});
  CHECK(x[33] == 1);
}

TEST_CASE("a block's sum waits at barriers, in both precisions of a template", "[unit][kernel]") {
  const auto f = made(samples::block_sum, "block_sum<float>");
  const auto d = made(samples::block_sum, "block_sum<double>");
  for (const int n : {1, 255, 256, 5000}) {
    const unsigned blocks = unsigned(n + 255) / 256;
    std::vector<float> x(n), sums(blocks);
    std::vector<double> xd(n), sumsd(blocks);
    for (int i = 0; i < n; ++i) x[i] = float(xd[i] = i % 13);
    run(*f, shape(blocks, 256), {value(n), array(x), array(sums)});
    run(*d, shape(blocks, 256), {value(n), array(xd), array(sumsd)});
    for (unsigned b = 0; b < blocks; ++b) {
      float want = 0;
      for (int i = int(b) * 256; i < std::min(n, int(b + 1) * 256); ++i) want += x[i];
      CHECK(sums[b] == want);
      CHECK(sumsd[b] == double(want));
    }
  }
}

TEST_CASE("a tiled matmul in shared memory, with edges", "[unit][kernel]") {
  const auto k = made(samples::tiled_matmul);
  const int m = 37, n = 50, l = 21;
  std::vector<float> a(m * l), b(l * n), c(m * n);
  for (int i = 0; i < m * l; ++i) a[i] = float(i % 5) - 2;
  for (int i = 0; i < l * n; ++i) b[i] = float(i % 7) - 3;
  LaunchShape s;
  s.grid[0] = 4;
  s.grid[1] = 3;
  s.block[0] = s.block[1] = 16;
  run(*k, s, {value(m), value(n), value(l), array(a), array(b), array(c)});
  int wrong = 0;
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; ++j) {
      float want = 0;
      for (int q = 0; q < l; ++q) want += a[i * l + q] * b[q * n + j];
      wrong += c[i * n + j] != want;
    }
  CHECK(wrong == 0);
}

TEST_CASE("a histogram with atomics, in dynamic shared memory and between blocks", "[unit][kernel]") {
  const auto k = made(samples::histogram);
  std::vector<unsigned char> data(100'000);
  std::vector<unsigned> counts(256), want(256);
  for (std::size_t i = 0; i < data.size(); ++i) ++want[data[i] = static_cast<unsigned char>(i * i % 251)];
  run(*k, shape(16, 64, 1024), {value(int(data.size())), array(data), array(counts)});
  CHECK(counts == want);
}

TEST_CASE("a scan by warp shuffles, within a block", "[unit][kernel]") {
  const auto k = made(samples::warp_scan);
  std::vector<int> x(4 * 256), sums(x.size()), want(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = int(i * 7 % 11);
    want[i] = x[i] + (i % 256 ? want[i - 1] : 0);
  }
  run(*k, shape(4, 256), {array(x), array(sums)});
  CHECK(sums == want);
}

TEST_CASE("a stencil in two dimensions, with its weights in constant memory", "[unit][kernel]") {
  KernelOptions options;
  options.cache = cache();
  options.constants = {{"weight", {0.5, 0.25, -0.25}}};
  auto k = Kernel::compile(samples::stencil, options);
  REQUIRE(k.ok());
  options.constants = {{"weight", {1, 0, 0}}};
  auto copy = Kernel::compile(samples::stencil, options);  // of the same library: its constants are its own
  REQUIRE(copy.ok());
  const int w = 33, h = 20;
  std::vector<float> in(w * h), out(w * h), same(w * h);
  std::iota(in.begin(), in.end(), 0.0f);
  LaunchShape s;
  s.grid[0] = 3;
  s.grid[1] = 3;
  s.block[0] = 16;
  s.block[1] = 8;
  run(**k, s, {value(w), value(h), array(in), array(out)});
  run(**copy, s, {value(w), value(h), array(in), array(same)});
  CHECK(same == in);
  const auto at = [&](int x, int y) { return x < 0 || y < 0 || x >= w || y >= h ? 0.0f : in[y * w + x]; };
  int wrong = 0;
  for (int y = 0; y < h; ++y)
    for (int x = 0; x < w; ++x) {
      const float want =
          0.5f * at(x, y) + 0.25f * (at(x - 1, y) + at(x + 1, y)) - 0.25f * (at(x, y - 1) + at(x, y + 1));
      wrong += std::fabs(out[y * w + x] - want) > 1e-3f;
    }
  CHECK(wrong == 0);
  options.constants = {{"weight", {1, 2}}};
  CHECK(has(Kernel::compile(samples::stencil, options).error().message, "constant weight: 2 numbers for 3"));
}

TEST_CASE("a thread that waits is never run twice", "[unit][kernel]") {
  // Only the last warp waits, after effects of all; then every third thread returns early.
  const auto k = made(R"(
    __global__ void k(int* runs, int* order) {
      __shared__ int turn;
      atomicAdd(&runs[threadIdx.x], 1);
      if (threadIdx.x == 0) turn = 0;
      if (threadIdx.x >= 64) __syncwarp();
      if (threadIdx.x % 3 == 0) return;
      __syncthreads();
      order[threadIdx.x] = atomicAdd(&turn, 1);
      __syncthreads();
      if (turn == 64) runs[threadIdx.x] += 10;
    })");
  std::vector<int> runs(96), order(96);
  run(*k, shape(1, 96), {array(runs), array(order)});
  for (int i = 0; i < 96; ++i) CHECK(runs[i] == (i % 3 ? 11 : 1));
}

TEST_CASE("warps vote, reduce, match and exchange", "[unit][kernel]") {
  const auto k = made(R"(
    __global__ void k(unsigned* out) {
      unsigned t = threadIdx.x, all = 0xffffffffu;
      unsigned r[12] = {__ballot_sync(all, t & 1), (unsigned)__any_sync(all, t == 5), (unsigned)__all_sync(all, t < 31),
                        __reduce_add_sync(all, t), (unsigned)__reduce_max_sync(all, -(int)t),
                        __match_any_sync(all, t / 8),
                        __shfl_sync(all, t * 2, 7), __shfl_down_sync(all, t, 3), __shfl_xor_sync(all, t, 5),
                        __shfl_up_sync(all, t, 1, 8), __activemask(), 0};
      if (t < 16) r[11] = __reduce_or_sync(0xffffu, 1u << t); else r[11] = __shfl_sync(0xffff0000u, t, 20);
      for (int i = 0; i < 12; ++i) out[t * 12 + i] = r[i];
    })");
  std::vector<unsigned> out(32 * 12);
  run(*k, shape(1, 32), {array(out)});
  for (unsigned t = 0; t < 32; ++t) {
    const std::vector<unsigned> want = {0xaaaaaaaau, 1,
                                        0,           496,
                                        0,           0xffu << t / 8 * 8,
                                        14,          t + 3 < 32 ? t + 3 : t,
                                        t ^ 5,       t % 8 ? t - 1 : t,
                                        ~0u,         t < 16 ? 0xffffu : 20u};
    CHECK(std::vector<unsigned>(out.begin() + t * 12, out.begin() + t * 12 + 12) == want);
  }
}

TEST_CASE("barriers count, shuffles move doubles, tiles and grids synchronise", "[unit][kernel]") {
  const auto k = made(R"(
    #include <cooperative_groups.h>
    namespace cg = cooperative_groups;
    __device__ int finished;
    __global__ void k(double* d, int* out) {
      auto block = cg::this_thread_block();
      auto tile = cg::tiled_partition<8>(block);
      auto grid = cg::this_grid();
      double v = cg::reduce(tile, (double)block.thread_rank(), cg::plus<double>());
      d[grid.thread_rank()] = v;
      int odd = __syncthreads_count(threadIdx.x & 1);
      if (block.thread_rank() == 0) atomicAdd(&finished, 1);
      grid.sync();
      out[grid.thread_rank()] = finished * 1000 + odd + (__syncthreads_and(threadIdx.x < 64) ? 500 : 0);
    })");
  std::vector<double> d(4 * 64);
  std::vector<int> out(4 * 64);
  LaunchShape s = shape(4, 64);
  s.cooperative = true;
  run(*k, s, {array(d), array(out)});
  for (int i = 0; i < 256; ++i) {
    CHECK(out[i] == 4532);
    CHECK(d[i] == (i % 64 / 8) * 64 + 28);
  }
  CHECK(has(failure(*made("#include <cooperative_groups.h>\n__global__ void k() { "
                          "cooperative_groups::this_grid().sync(); }"),
                    shape(2, 32), {})
                .hint,
            "cooperative = true"));
}

TEST_CASE("small floats round to nearest even, vectors and intrinsics are there", "[unit][kernel]") {
  const auto k = made(R"(
    #include <cuda_fp16.h>
    #include <cuda_bf16.h>
    __global__ void k(const float* x, __half* h, __nv_bfloat16* b, float4* v, float* f) {
      int i = threadIdx.x;
      h[i] = __float2half(x[i]);
      b[i] = __hadd(__float2bfloat16(x[i]), __nv_bfloat16(1.0f));
      v[i] = make_float4(__half2float(h[i]), __bfloat162float(b[i]), fmaf(x[i], 2.0f, 1.0f), __expf(0.0f));
      f[i] = __popc(i) + __clz(i) + rsqrtf(4.0f) + max(1, 2) + fminf(3.0f, __ldg(&x[0]));
    })");
  std::vector<float> x = {1.0f, 65519.0f, 65520.0f, 1.0f + 1.0f / 2048, 1.0f + 3.0f / 2048, 1e-7f, -0.0f, 1.00390625f};
  std::vector<std::uint16_t> h(8), b(8);
  std::vector<float> v(32), f(8);
  run(*k, shape(1, 8), {array(x), array(h), array(b), array(v), array(f)});
  CHECK(h == std::vector<std::uint16_t>{0x3c00, 0x7bff, 0x7c00, 0x3c00, 0x3c02, 0x0002, 0x8000, 0x3c04});
  CHECK(b[0] == 0x4000);  // 1 + 1
  CHECK(b[7] == 0x4000);  // 1.0039.. rounds to 1, ties to even
  CHECK(v[2] == 3.0f);
  CHECK(v[3] == 1.0f);
  CHECK(f[0] == 0 + 32 + 0.5f + 2 + 1);
}

TEST_CASE("a dynamic shared array outside of functions, printf, and a block of three dimensions", "[unit][kernel]") {
  const auto k = made(R"(
    extern __shared__ int s[];
    __global__ void k(int* out) {
      int t = threadIdx.x + 2 * threadIdx.y + 6 * threadIdx.z;
      s[t] = t;
      __syncthreads();
      out[blockIdx.z * 24 + t] = s[23 - t] + 100 * blockIdx.z;
      if (t == 0) printf("block %d of %d\n", blockIdx.z, gridDim.z);
    })");
  LaunchShape s = shape(1, 2, 96);
  s.block[1] = 3;
  s.block[2] = 4;
  s.grid[2] = 2;
  std::vector<int> out(48);
  CHECK(run(*k, s, {array(out)}) == "block 0 of 2\nblock 1 of 2\n");
  for (int i = 0; i < 48; ++i) CHECK(out[i] == 23 - i % 24 + 100 * (i / 24));
}

TEST_CASE("a compile error names the script's line", "[unit][kernel]") {
  const auto e = compile("__global__ void k(float* x) {\n  x[0] = y;\n}\n").error();
  CHECK(e.kind == ErrorKind::invalid);
  CHECK(e.code == "kernel_compile");
  CHECK(has(e.message, "test.lua:11: kernel k: "));
  CHECK(has(e.message, "'y'"));
  CHECK(has(e.hint, "x[0] = y;"));
  CHECK(has(compile("__global__ void a() {}\n__global__ void b() {}").error().message, "2 kernels: a, b"));
  CHECK(has(compile("__global__ void a() {}", "b").error().message, "has no kernel b"));
  CHECK(has(compile("template <class T> __global__ void a() {}").error().message, "is a template"));
  CHECK(has(compile("__global__ void a() {}", "a; int x").error().message, "cannot be the name of a kernel"));
  CHECK(has(compile("int f() { return 1; }").error().message, "no kernel"));
  CHECK(has(compile("\n__global__ void k(int").error().message,
            "test.lua:11: the parameter list of k has no closing parenthesis"));
}

TEST_CASE("a kernel that a macro makes is launched by its name", "[unit][kernel]") {
  const std::string text = "#define K(n) __global__ void n(float* x) { x[0] = 1; }\nK(f)\n";
  std::vector<float> x(1);
  run(*made(text, "f"), shape(1, 1), {array(x)});
  CHECK(x[0] == 1.0f);
  CHECK(has(compile(text).error().hint, "one that a macro makes needs name ="));
  CHECK(compile(text, "g").error().message == "test.lua:10: kernel g: the source makes no kernel of that name");
  run(*made("#define KERNEL extern \"C\" __global__ void\n#if 0\nKERNEL g(int n) {}\n#endif\n"
            "KERNEL f(float* x) { x[0] = 2; }"),
      shape(1, 1), {array(x)});
  CHECK(x[0] == 2.0f);
}

TEST_CASE("what a kernel returns, and references, are refused with the script's line", "[unit][kernel]") {
  for (const char* type : {"int", "float*", "unsigned long long", "__launch_bounds__(32) static float4", "auto"}) {
    INFO(type);
    const auto e = compile(std::string("\n__global__ ") + type + " f(float* x) { return 0; }").error();
    CHECK(has(e.message, "test.lua:11: kernel f: it returns "));
    CHECK(e.code == "kernel_compile");
  }
  for (const char* parameter : {"float& x", "const float4 &x", "int (&x)[4]", "float&& x"}) {
    INFO(parameter);
    CHECK(has(compile(std::string("__global__ void f(int n, ") + parameter + ") {}").error().message,
              "test.lua:10: kernel f: the parameter "));
  }
  CHECK(compile("__global__ void f(float* x);\nvoid __global__ f(float* x) {}").ok());
  CHECK(compile("typedef void nothing;\n__global__ nothing f(float* x) {}").ok());
}

TEST_CASE("a shape that no GPU would take is refused", "[unit][kernel]") {
  const auto k = made("__global__ void k() {}");
  CHECK(has(k->check_shape(shape(0, 1)).error().message, "must not be 0"));
  CHECK(has(k->check_shape(shape(1, 1025)).error().message, "at most 1024"));
  CHECK(has(k->check_shape(shape(1, 1, 1 << 20)).error().message, "shared memory"));
  for (const int axis : {1, 2}) {
    LaunchShape flat = shape(1, 1);
    flat.grid[axis] = 65535;
    CHECK(k->check_shape(flat).ok());
    flat.grid[axis] = 70000;
    CHECK(has(k->check_shape(flat).error().message, "70000"));
    CHECK(has(k->check_shape(flat).error().message, "at most 65535 in y and z"));
  }
  CHECK(k->check_shape(shape(0x7fffffff, 1)).ok());
  CHECK(has(k->check_shape(shape(0x80000000u, 1)).error().message, "at most 2^31 - 1"));
  LaunchShape deep = shape(1, 1);
  deep.block[2] = 65;
  CHECK(has(k->check_shape(deep).error().message, "at most 64 in z"));
  LaunchShape s = shape(1000, 1);
  s.cooperative = true;
  CHECK(has(k->check_shape(s).error().message, "cooperative"));
}

TEST_CASE("threads that wait for each other for ever are an error, not a hang", "[unit][kernel]") {
  const auto k = made(
      "__global__ void k() {\n  if (threadIdx.x < 16) __shfl_sync(0xffffffffu, 1, 0);\n"
      "  else __syncthreads();\n}");
  const auto e = failure(*k, shape(1, 32), {});
  CHECK(e.kind == ErrorKind::device);
  CHECK(has(e.message, "waits for lanes 0xffffffff"));
}

TEST_CASE("checked mode names what is out of bounds", "[unit][kernel]") {
  std::vector<float> x(10), y(10);
  const auto k = made(
      "__global__ void k(const float* x, float* y, int n) {\n  int i = threadIdx.x;\n"
      "  const float* p = x + n;\n  y[i] = p[i];\n}\n",
      "", true);
  run(*k, shape(1, 10), {array(x), array(y), value(0)});
  auto e = failure(*k, shape(1, 10), {array(x), array(y), value(3)});
  CHECK(e.message == "kernel k: thread (7,0,0) of block (0,0,0) reads x[10], which has 10 elements (test.lua:13)");
  e = failure(*k, shape(1, 10), {array(x), array(y), value(-2)});
  CHECK(has(e.message, "thread (0,0,0) of block (0,0,0) reads x[-2]"));
  e = failure(*k, shape(1, 11), {array(x), array(y), value(-1)});
  CHECK(has(e.message, "x[-1]"));
  const auto shared = made(
      "__global__ void k(float* y) {\n  __shared__ float s[4][8];\n  s[0][threadIdx.x] = 1;\n"
      "  __syncthreads();\n  y[0] = s[3][0];\n}",
      "", true);
  const auto beyond = failure(*shared, shape(1, 9), {array(y)}).message;
  CHECK(has(beyond, "thread (8,0,0) of block (0,0,0): index 8 of 'float"));
  CHECK(has(beyond, "(test.lua:12)"));
  const auto dynamic = made("__global__ void k() { extern __shared__ int s[]; s[threadIdx.x] = 1; }", "", true);
  run(*dynamic, shape(1, 8, 32), {});
  CHECK(
      has(failure(*dynamic, shape(1, 9, 32), {}).message, "writes byte 32 of the dynamic shared memory, which has 32"));
  const auto outside = made(
      "extern __shared__ int s[];\n__device__ int at(int i) { return s[i]; }\n"
      "__global__ void k(int* y) {\n  s[threadIdx.x] = threadIdx.x;\n  __syncthreads();\n"
      "  y[threadIdx.x] = at(7 - threadIdx.x);\n}",
      "", true);
  std::vector<int> turned(8);
  run(*outside, shape(1, 8, 32), {array(turned)});
  CHECK(turned == std::vector<int>{7, 6, 5, 4, 3, 2, 1, 0});
  CHECK(has(failure(*outside, shape(1, 9, 32), {array(turned)}).message,
            "writes byte 32 of the dynamic shared memory, which has 32"));
  const auto early = made(
      "extern __shared__ int s[];\n__global__ void k(int* y) {\n  s[threadIdx.x] = 1;\n"
      "  y[threadIdx.x] = s[7 - threadIdx.x];\n}",
      "", true);
  CHECK(has(failure(*early, shape(1, 8, 32), {array(turned)}).message, "shared memory that thread"));
}

TEST_CASE("checked mode does not watch what runs before a launch", "[unit][kernel]") {
  std::vector<int> y(1);
  const auto k = made(
      "struct Table { int v[4]; Table() { for (int i = 0; i < 4; ++i) v[i] = 2 * i; } };\n"
      "Table table;\n__global__ void k(int* y) { y[0] = table.v[3]; }",
      "", true);
  run(*k, shape(1, 1), {array(y)});
  CHECK(y[0] == 6);
}

TEST_CASE("checked mode leaves the arguments alone when something is wrong", "[unit][kernel]") {
  std::vector<int> x(4, 7);
  const auto k = made("__global__ void k(int* x) { x[threadIdx.x] = 1; }", "", true);
  failure(*k, shape(1, 5), {array(x)});
  CHECK(x == std::vector<int>(4, 7));
  run(*k, shape(1, 4), {array(x)});
  CHECK(x == std::vector<int>(4, 1));
}

TEST_CASE("checked mode finds a missing barrier, and no false one in the samples", "[unit][kernel]") {
  std::vector<float> x(256, 1.0f), y(256);
  const auto missing = made(
      "__global__ void k(const float* x, float* y) {\n  __shared__ float s[256];\n"
      "  s[threadIdx.x] = x[threadIdx.x];\n  y[threadIdx.x] = s[255 - threadIdx.x];\n}",
      "", true);
  const auto e = failure(*missing, shape(1, 256), {array(x), array(y)});
  CHECK(has(e.message, "shared memory that thread"));
  CHECK(has(e.message, "since the last barrier (test.lua:1"));
  CHECK(has(e.hint, "__syncthreads()"));
  int n = 256;
  std::vector<float> sums(1);
  run(*made(samples::block_sum, "block_sum<float>", true), shape(1, 256), {value(n), array(x), array(sums)});
  CHECK(sums[0] == 256.0f);
  std::vector<int> in(256, 1), out(256);
  run(*made(samples::warp_scan, "", true), shape(1, 256), {array(in), array(out)});
  CHECK(out[255] == 256);
  std::vector<unsigned char> data(1000);
  std::vector<unsigned> counts(256);
  run(*made(samples::histogram, "", true), shape(3, 64, 1024), {value(1000), array(data), array(counts)});
  CHECK(counts[0] == 1000);
}

TEST_CASE("checked mode reports divergence before a barrier, writes to const memory, and asserts", "[unit][kernel]") {
  const auto parted = made(
      "__global__ void k(int n) {\n  if (threadIdx.x < n) __syncthreads();\n"
      "  else __syncthreads();\n}",
      "", true);
  CHECK(has(failure(*parted, shape(1, 32), {value(3)}).message, "waits at another __syncthreads()"));
  const auto of_a_line = made(
      "__global__ void k(int n) { if (threadIdx.x < n) __syncthreads(); else __syncthreads(); "
      "}",
      "", true);
  run(*of_a_line, shape(1, 32), {value(0)});
  CHECK(has(failure(*of_a_line, shape(1, 32), {value(3)}).message, "waits at another __syncthreads()"));
  std::vector<float> x(4);
  const auto constant = made("__global__ void k(const float* x) { ((float*)x)[1] = 2; }", "", true);
  CHECK(has(failure(*constant, shape(1, 1), {array(x)}).message, "writes x[1], which is const"));
  const auto asserts = made("#include <cassert>\n__global__ void k(int n) { assert(n > (int)threadIdx.x); }");
  CHECK(has(failure(*asserts, shape(1, 4), {value(2)}).message,
            "thread (2,0,0) of block (0,0,0): assertion failed: n > (int)threadIdx.x (test.lua:11)"));
}

TEST_CASE("a torn file in the cache is compiled anew", "[unit][kernel]") {
  constexpr const char* source = "__global__ void torn(int* x) { x[0] = 41 + 1; }";
  made(source);
  int torn = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(cache())) {
    if (entry.path().extension() != ".so") continue;
    auto text = read_small_file(entry.path().string(), 1 << 24);
    if (text->find("_Z4tornPi") == std::string::npos && text->find("torn") == std::string::npos) continue;
    ++torn;
    REQUIRE(write_small_file(entry.path().string(), text->substr(0, 100)).ok());
  }
  REQUIRE(torn >= 1);
  std::vector<int> x(1);
  run(*made(source), shape(1, 1), {array(x)});
  CHECK(x[0] == 42);
}

}  // namespace rille::device
