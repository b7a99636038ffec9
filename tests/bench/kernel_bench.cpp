// What user kernels cost on the CPU, as ratios in one run: bench_kernel [ROUNDS]; prints one JSON object. kernel.py
// adds the cost of a call from Lua. The hand-written loops are compiled by the same compiler with the same flags. What
// runs on one thread is measured in its CPU time, so that other work on the machine counts less.
#include <dlfcn.h>
#include <omp.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/compute/device/kernel.hpp"
#include "runtime/compute/device/kernel_files.hpp"

namespace {

using namespace rille;
using namespace rille::device;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double timed(const std::function<void()>& fn) {
  const double start = seconds();
  fn();
  return seconds() - start;
}

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

double cpu_timed(const std::function<void()>& fn) {
  const double start = cpu_seconds();
  fn();
  return cpu_seconds() - start;
}

// With the programs that it starts, one after another.
double all_timed(const std::function<void()>& fn) {
  const auto children = [] {
    rusage r{};
    getrusage(RUSAGE_CHILDREN, &r);
    return double(r.ru_utime.tv_sec + r.ru_stime.tv_sec) + double(r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1e-6;
  };
  const double before = children();
  const double mine = cpu_timed(fn);
  return mine + children() - before;
}

[[noreturn]] void stop(const std::string& why) {
  std::fprintf(stderr, "bench_kernel: %s\n", why.c_str());
  std::exit(1);
}

std::shared_ptr<Kernel> compile(const std::string& source, const std::string& cache) {
  KernelOptions options;
  options.cache = cache;
  auto k = Kernel::compile(source, options);
  if (!k) stop(k.error().summary());
  return *k;
}

template <class T>
LaunchArgument value(T v) {
  LaunchArgument a;
  std::memcpy(a.value, &v, sizeof v);
  return a;
}

LaunchArgument pointer(std::vector<float>& v) {
  LaunchArgument a;
  a.pointer = v.data();
  a.bytes = v.size() * 4;
  return a;
}

void run(const Kernel& k, unsigned grid, unsigned block, const std::vector<LaunchArgument>& arguments) {
  LaunchShape shape;
  shape.grid[0] = grid;
  shape.block[0] = block;
  std::string said;
  if (auto r = k.run(shape, arguments, said); !r) stop(r.error().summary());
}

constexpr const char* saxpy = R"(
__global__ void saxpy(int n, float a, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
})";
constexpr const char* curve = R"(
__global__ void curve(int n, float a, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = sqrtf(x[i] * x[i] + a) / (1.0f + fabsf(x[i]));
})";
constexpr const char* loops = R"(
extern "C" void saxpy(int n, float a, const float* x, float* y) {
#pragma omp parallel for simd
  for (int i = 0; i < n; ++i) y[i] = a * x[i] + y[i];
}
extern "C" void curve(int n, float a, const float* x, float* y) {
#pragma omp parallel for simd
  for (int i = 0; i < n; ++i) y[i] = __builtin_sqrtf(x[i] * x[i] + a) / (1.0f + __builtin_fabsf(x[i]));
})";

using Loop = void (*)(int, float, const float*, float*);
using Numbers = std::map<std::string, std::vector<double>>;

constexpr const char* flags =
    " -std=gnu++17 -w -march=native -fPIC -fvisibility=default -fno-exceptions -fno-rtti "
    "-fno-math-errno -fno-trapping-math -ffp-contract=fast -O3 -shared ";

void shell(const std::string& command) {
  if (std::system(command.c_str()) != 0) stop("failed: " + command);
}

// Plain loop / kernel, in time: 1 is as fast, 0.8 the goal.
void elementwise(Numbers& out, const std::string& name, const Kernel& k, Loop loop, int n, int threads) {
  omp_set_num_threads(threads);
  std::vector<float> x(std::size_t(n), 1.5f), y(std::size_t(n), 0.5f);
  const std::vector<LaunchArgument> arguments = {value(n), value(0.5f), pointer(x), pointer(y)};
  const unsigned grid = unsigned(n + 255) / 256;
  const int repeat = std::max(1, 20'000'000 / n);
  const auto mine = [&] {
    for (int i = 0; i < repeat; ++i) run(k, grid, 256, arguments);
  };
  const auto plain = [&] {
    for (int i = 0; i < repeat; ++i) loop(n, 0.5f, x.data(), y.data());
  };
  mine();
  plain();
  const auto measure = threads == 1 ? cpu_timed : timed;
  const double a = measure(plain), b = measure(mine), c = measure(plain), d = measure(mine);
  out[name].push_back((a + c) / (b + d));
}

void switches(Numbers& out, const std::string& cache) {
  omp_set_num_threads(1);
  const auto barrier = compile("__global__ void k(int n) { for (int i = 0; i < n; ++i) __syncthreads(); }", cache);
  const auto shuffle = compile(
      "__global__ void k(int n, int* out) {\n  int v = threadIdx.x;\n"
      "  for (int i = 0; i < n; ++i) v += __shfl_xor_sync(0xffffffffu, v, 1);\n"
      "  if (v == 12345) *out = v;\n}",
      cache);
  for (const int threads : {32, 256, 1024}) {
    const int waits = 4'000'000 / threads;
    run(*barrier, 1, unsigned(threads), {value(10)});
    const double s = cpu_timed([&] { run(*barrier, 1, unsigned(threads), {value(waits)}); });
    out["switch_ns_" + std::to_string(threads)].push_back(s * 1e9 / (double(waits) * threads));
  }
  std::vector<float> nothing(1);
  const double s = cpu_timed([&] { run(*shuffle, 1, 256, {value(10'000), pointer(nothing)}); });
  out["shuffle_ns_256"].push_back(s * 1e9 / (10'000.0 * 256));
}

void starts(Numbers& out, const std::string& place, int round) {
  const std::string cache = place + "/fresh" + std::to_string(round), empty = place + "/empty.cpp";
  if (!write_small_file(empty, "extern \"C\" int f() { return 1; }\n")) stop("cannot write " + empty);
  const double compiler = all_timed([&] { shell(cpu_compiler() + flags + "-o " + place + "/empty.so " + empty); });
  const double first = all_timed([&] { compile(saxpy, cache); });
  const double second = cpu_timed([&] { compile(saxpy, cache); });
  out["compiler_start_ms"].push_back(compiler * 1e3);
  out["first_ms"].push_back(first * 1e3);
  out["first_beyond_ms"].push_back((first - compiler) * 1e3);
  out["cached_ms"].push_back(second * 1e3);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  const auto work = WorkDirectory::create(std::filesystem::temp_directory_path().string());
  if (!work) stop(work.error().summary());
  const std::string place = work->path(), library = place + "/loops.so";
  if (!write_small_file(place + "/loops.cpp", loops)) stop("cannot write the loops");
  shell(cpu_compiler() + flags + "-fopenmp -o " + library + " " + place + "/loops.cpp");
  void* handle = ::dlopen(library.c_str(), RTLD_NOW);
  if (!handle) stop("cannot load the loops");
  const auto plain_saxpy = reinterpret_cast<Loop>(::dlsym(handle, "saxpy"));
  const auto plain_curve = reinterpret_cast<Loop>(::dlsym(handle, "curve"));
  const auto k = compile(saxpy, place + "/cache"), c = compile(curve, place + "/cache");
  const int threads = omp_get_max_threads();
  Numbers out;
  for (int i = 0; i < rounds; ++i) {
    switches(out, place + "/cache");
    elementwise(out, "saxpy_cache", *k, plain_saxpy, 32'768, 1);
    elementwise(out, "saxpy_memory", *k, plain_saxpy, 20'000'000, 1);
    elementwise(out, "saxpy_memory_threads", *k, plain_saxpy, 20'000'000, threads);
    elementwise(out, "curve_cache", *c, plain_curve, 32'768, 1);
    starts(out, place, i);
  }
  std::printf("{");
  bool first = true;
  for (auto& [name, list] : out) {
    std::sort(list.begin(), list.end());
    std::printf("%s\n  \"%s\": %.4g", first ? "" : ",", name.c_str(), list[list.size() / 2]);
    first = false;
  }
  std::printf("\n}\n");
  return 0;
}
