// What a launch and a graph's replay cost in C++, by the driver alone: the floor of launch.lua, in the same bursts.
// usage: launch_floor FILE ENTRY   FILE: an image for this GPU of a kernel (int, float, const float*, float*), as
// launch.lua writes it. Prints one line of JSON.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "runtime/device/cuda/driver.hpp"

namespace {

using namespace rille::device::cuda;
constexpr int rounds = 100, launches = 500, nodes = 400, replays = 20;

Driver driver;

void must(CUresult result, const char* doing) {
  Failure f{};
  if (driver.ok(result, doing, f)) return;
  std::fprintf(stderr, "launch_floor: %s\n", f.message);
  std::exit(1);
}

// Microseconds of the host for one of `count` calls, before the stream is waited for: the median of the rounds.
template <class Fn>
double burst_us(CUstream stream, int count, const Fn& fn) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) fn();
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - began).count());
    must(driver.cuStreamSynchronize(stream), "waiting");
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  return times[rounds / 2] / count;
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
  if (argc != 3) return std::fputs("usage: launch_floor FILE ENTRY\n", stderr), 2;
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
  const double launch_us = burst_us(stream, launches, launch);
  const CUgraphExec graph = capture(stream, launch);
  const double replay_us = burst_us(stream, replays, [&] { must(driver.cuGraphLaunch(graph, stream), "replaying"); });
  must(driver.cuGraphExecDestroy(graph), "discarding a graph");
  must(driver.cuModuleUnload(module), "unloading the kernel");
  std::printf("{\"result\": {\"figures\": [{\"name\": \"launch, host\", \"value\": %.4f, \"unit\": \"us\"}, "
              "{\"name\": \"replay of %d nodes, host\", \"value\": %.4f, \"unit\": \"us\"}]}}\n",
              launch_us, nodes, replay_us);
  return 0;
}
