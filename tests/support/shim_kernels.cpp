#include "shim_kernels.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>
#include <unordered_map>

#include <fmt/format.h>

namespace rille::test {

namespace {

using Find = const rille_abi::Kernel* (*)(const char*);

Find library() {
  static const Find find = []() -> Find {
    void* handle = ::dlopen(RILLE_SHIM_KERNELS, RTLD_NOW | RTLD_LOCAL);
    return handle ? reinterpret_cast<Find>(::dlsym(handle, "rille_shim_kernel")) : nullptr;
  }();
  return find;
}

device::RunnerPool& runners() {
  static auto* const pool = new device::RunnerPool;    // outlives every thread that runs kernels
  return *pool;
}

const char* word_of(device::Violation::Kind kind) {
  using Kind = device::Violation::Kind;
  switch (kind) {
    case Kind::deadlock: return "waits for others that never come";
    case Kind::barriers: return "its threads wait at two barriers";
    case Kind::lane: return "a lane names a mask without itself";
    case Kind::failed: return "an assertion failed";
    default: return "an access that it may not make";
  }
}

}  // namespace

const rille_abi::Kernel* shim_kernel(const char* name) {
  static std::mutex mutex;
  static std::unordered_map<std::string, const rille_abi::Kernel*> known;
  const std::lock_guard lock(mutex);
  const auto [at, fresh] = known.try_emplace(name, nullptr);
  if (fresh) at->second = library() ? library()(name) : nullptr;
  return at->second;
}

std::string run_shim_kernel(const char* name, const unsigned (&grid)[3], const unsigned (&block)[3],
                            unsigned shared_bytes, void** arguments) {
  device::KernelRun run;
  run.kernel = shim_kernel(name);
  if (!run.kernel) return fmt::format("there is no kernel {}", name);
  std::memcpy(run.grid, grid, sizeof run.grid);
  std::memcpy(run.block, block, sizeof run.block);
  const std::uint64_t in_block = std::uint64_t(block[0]) * block[1] * block[2];
  if (in_block == 0 || in_block > 1024 || std::uint64_t(grid[0]) * grid[1] * grid[2] == 0 || grid[1] > 65535 ||
      grid[2] > 65535) {
    return fmt::format("kernel {}: a grid of {} x {} x {} and a block of {} x {} x {}", name, grid[0], grid[1], grid[2],
                       block[0], block[1], block[2]);
  }
  run.shared_bytes = shared_bytes;
  run.arguments = arguments;
  device::RunReport report;
  run_kernel(run, runners(), report);
  if (report.out_of_memory) return fmt::format("kernel {}: no memory for its stacks", name);
  if (report.violation.kind == device::Violation::Kind::none) return "";
  return fmt::format("kernel {}: thread {} of block {}: {}", name, report.violation.thread, report.violation.block,
                     word_of(report.violation.kind));
}

void ShimLauncher::launch(const char* kernel, kernels::cuda::Grid grid, kernels::cuda::Grid block,
                          unsigned shared_bytes, void** arguments) {
  ++launches;
  kernels.insert(kernel);
  auto said = run_shim_kernel(kernel, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared_bytes, arguments);
  if (error_.empty()) error_ = std::move(said);
}

void* ShimLauncher::scratch(std::size_t bytes) {
  const std::size_t room = bytes + 256;
  scratch_.push_back(std::make_unique<std::byte[]>(room));
  void* at = scratch_.back().get();
  std::memset(at, 0xff, room);
  std::size_t left = room;
  return std::align(256, bytes, at, left);
}

std::string ShimLauncher::take_error() {
  std::string said = std::exchange(error_, {});
  if (said.empty() && fault_.code) {
    char text[kernels::Call::error_bytes];
    describe(fault_, text, sizeof text);
    said = text;
  }
  fault_ = {};
  return said;
}

}  // namespace rille::test
