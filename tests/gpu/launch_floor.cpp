// What a launch and a graph's replay cost in C++, by the driver alone: the floor of launch.lua, in the same bursts.
// usage: launch_floor FILE ENTRY [ROUNDS]   FILE: an image for this GPU of a kernel (int, float, const float*, float*),
// as launch.lua writes it. Prints one line of JSON.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "runtime/compute/device/cuda/driver.hpp"

namespace {

using namespace rille::device::cuda;
constexpr int launches = 500, nodes = 400, replays = 500;

Driver driver;

void must(CUresult result, const char* doing) {
  Failure f{};
  if (driver.ok(result, doing, f)) return;
  std::fprintf(stderr, "launch_floor: %s\n", f.message);
  std::exit(1);
}

double median(std::vector<double> times) {
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// Microseconds for one of `count` calls, medians of the rounds.
struct Burst {
  double host;   // before the stream is waited for
  double whole;  // with the wait
};

template <class Fn>
Burst burst_us(CUstream stream, int rounds, int count, const Fn& fn) {
  using Clock = std::chrono::steady_clock;
  const auto since = [&](Clock::time_point began) {
    return std::chrono::duration<double, std::micro>(Clock::now() - began).count() / count;
  };
  std::vector<double> calls, whole;
  for (int round = 0; round < rounds; ++round) {
    const auto began = Clock::now();
    for (int i = 0; i < count; ++i) fn();
    calls.push_back(since(began));
    must(driver.cuStreamSynchronize(stream), "waiting");
    whole.push_back(since(began));
  }
  return {median(std::move(calls)), median(std::move(whole))};
}

void print(const char* what, const Burst& us, const char* after) {
  std::printf(
      "{\"name\": \"%s, host\", \"value\": %.4f, \"unit\": \"us\"}, "
      "{\"name\": \"%s, with the wait for the device\", \"value\": %.4f, \"unit\": \"us\"}%s",
      what, us.host, what, us.whole, after);
}

CUgraphExec capture(CUstream stream, const auto& launch) {
  CUgraph graph{};
  CUgraphExec made{};
  must(driver.cuStreamBeginCapture(stream, cu::capture_thread_local), "beginning a capture");
  for (int i = 0; i < nodes; ++i) launch();
  must(driver.cuStreamEndCapture(stream, &graph), "ending a capture");
  must(driver.cuGraphInstantiate(&made, graph, 0), "making a graph");
  must(driver.cuGraphDestroy(graph), "discarding a graph");
  return made;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc == 4 ? std::atoi(argv[3]) : 100;
  if (argc < 3 || argc > 4 || rounds < 1) return std::fputs("usage: launch_floor FILE ENTRY [ROUNDS]\n", stderr), 2;
  std::ifstream file(argv[1], std::ios::binary);
  std::string image{std::istreambuf_iterator<char>(file), {}};
  Failure f{};
  if (image.empty()) return std::fprintf(stderr, "launch_floor: nothing is read from %s\n", argv[1]), 1;
  if (!driver.load(f)) return std::fprintf(stderr, "launch_floor: %s\n", f.message), 1;
  CUdevice device{};
  CUcontext context{};
  CUstream stream{};
  CUmodule module{};
  CUfunction kernel{};
  CUdeviceptr x{}, y{};
  must(driver.cuDeviceGet(&device, 0), "asking for the device");
  must(driver.cuDevicePrimaryCtxRetain(&context, device), "taking the context");
  must(driver.cuCtxPushCurrent(context), "taking the context");
  must(driver.cuStreamCreate(&stream, cu::stream_non_blocking), "making a stream");
  must(driver.cuModuleLoadData(&module, image.c_str()), "loading the kernel");
  must(driver.cuModuleGetFunction(&kernel, module, argv[2]), "finding the kernel");
  must(driver.cuMemAlloc(&x, 256), "allocating");
  must(driver.cuMemAlloc(&y, 256), "allocating");
  int n = 64;
  float a = 0.5F;
  void* arguments[] = {&n, &a, &x, &y};
  const auto launch = [&] {
    must(driver.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr), "launching");
  };
  const Burst launch_us = burst_us(stream, rounds, launches, launch);
  const CUgraphExec graph = capture(stream, launch);
  // A burst of replays is 200,000 kernels: a tenth of the rounds.
  const Burst replay_us =
      burst_us(stream, (rounds + 9) / 10, replays, [&] { must(driver.cuGraphLaunch(graph, stream), "replaying"); });
  must(driver.cuGraphExecDestroy(graph), "discarding a graph");
  must(driver.cuModuleUnload(module), "unloading the kernel");
  std::printf("{\"result\": {\"figures\": [");
  print("launch", launch_us, ", ");
  print(("replay of " + std::to_string(nodes) + " nodes").c_str(), replay_us, "]}}\n");
  return 0;
}
