#include "shim_kernels.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <unordered_map>

namespace rille::test {

namespace {

using Find = const rille_abi::Kernel* (*)(const char*);

// The single library, or the checked variants, one per source.
const std::vector<Find>& libraries() {
  static const std::vector<Find> all = [] {
    std::vector<Find> found;
    std::string files = shim_checked() ? RILLE_SHIM_KERNELS_CHECKED : RILLE_SHIM_KERNELS;
    for (std::size_t at = 0; at <= files.size();) {
      const auto end = std::min(files.find(':', at), files.size());
      if (void* handle = ::dlopen(files.substr(at, end - at).c_str(), RTLD_NOW | RTLD_LOCAL))
        found.push_back(reinterpret_cast<Find>(::dlsym(handle, "rille_shim_kernel")));
      at = end + 1;
    }
    return found;
  }();
  return all;
}

device::RunnerPool& runners() {
  static auto* const pool = new device::RunnerPool;  // outlives every thread that runs kernels
  return *pool;
}

const char* word_of(device::Violation::Kind kind) {
  using Kind = device::Violation::Kind;
  switch (kind) {
    case Kind::deadlock: return "waits for others that never come";
    case Kind::barriers: return "its threads wait at two barriers";
    case Kind::lane: return "a lane names a mask without itself";
    case Kind::failed: return "an assertion failed";
    case Kind::race: return "shared memory without a barrier between";
    case Kind::index: return "an index beyond an array";
    case Kind::writes_constant: return "writes what it may only read";
    case Kind::shared_outside: return "an access beside its shared memory";
    default: return "an access that it may not make";
  }
}

}  // namespace

bool shim_checked() {
  static const bool set = std::getenv("RILLE_SHIM_CHECKED") != nullptr;
  return set;
}

const rille_abi::Kernel* shim_kernel(const char* name) {
  static std::mutex mutex;
  static std::unordered_map<std::string, const rille_abi::Kernel*> known;
  const std::lock_guard lock(mutex);
  const auto [at, fresh] = known.try_emplace(name, nullptr);
  if (fresh)
    for (const Find find : libraries())
      if (!at->second) at->second = find(name);
  return at->second;
}

std::string run_shim_kernel(const char* name, const unsigned (&grid)[3], const unsigned (&block)[3],
                            unsigned shared_bytes, void** arguments,
                            const std::vector<device::CheckedArgument>& memory) {
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
  device::MemoryCheck check;
  if (shim_checked()) {
    check.arguments = memory;
    check.watches_arguments = false;  // the memory of all tensors, whose elements are not known here
    rille_abi::Worker nobody{};
    run.kernel->locals(&nobody);  // creates this thread's part
    device::find_module(run.kernel, check);
    run.check = &check;
  }
  run_kernel(run, runners(), report);
  if (report.out_of_memory) return fmt::format("kernel {}: no memory for its stacks", name);
  if (report.violation.kind == device::Violation::Kind::none) return "";
  const auto& v = report.violation;
  const auto at = std::uintptr_t(v.site) - std::uintptr_t(check.module.begin);
  return fmt::format("kernel {}: thread {} of block {}: {} (access {}, {} bytes, at +{:#x}, line {})", name, v.thread,
                     v.block, word_of(v.kind), v.access, v.bytes, shim_checked() ? at : 0, v.line);
}

void ShimLauncher::launch(const char* kernel, kernels::cuda::Grid grid, kernels::cuda::Grid block,
                          unsigned shared_bytes, void** arguments) {
  ++launches;
  kernels.insert(kernel);
  auto memory = memory_;
  const auto own = [&](const void* begin, std::size_t bytes, bool read_only) {
    memory.push_back({static_cast<const std::byte*>(begin), bytes, 0, read_only});
  };
  own(&fault_, sizeof fault_, false);
  own(&key_, sizeof key_, true);
  for (const auto& s : scratch_) own(s.data, s.bytes, false);
  auto said =
      run_shim_kernel(kernel, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared_bytes, arguments, memory);
  if (error_.empty()) error_ = std::move(said);
}

void* ShimLauncher::scratch(std::size_t bytes) {
  const std::size_t room = bytes + 256;
  Scratch s{std::make_unique<std::byte[]>(room), nullptr, bytes};
  s.data = s.memory.get();
  std::memset(s.data, 0xff, room);
  std::size_t left = room;
  std::align(256, bytes, s.data, left);
  scratch_.push_back(std::move(s));
  return scratch_.back().data;
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
