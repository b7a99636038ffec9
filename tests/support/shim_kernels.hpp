// The CUDA kernels of kernels/cuda on the CPU: compiled by the build through the shim (tests/support/CMakeLists.txt)
// and run by the runner of user kernels. For unit tests of the kernels and for the stand-in driver.
//
// A target that uses it takes $<TARGET_OBJECTS:rille_shim_support>, depends on rille_shim_kernels and links
// rille_static (for run_kernel). Threads: shim_kernel() from any; ShimLauncher by one at a time.
#pragma once

#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "kernels/cuda/launcher.hpp"
#include "runtime/compute/device/kernel_run.hpp"

namespace rille::test {

// nullptr: unknown kernel.
const rille_abi::Kernel* shim_kernel(const char* name);

// Whether RILLE_SHIM_CHECKED is set: the checked variants of the kernels run, which report each access to a
// MemoryCheck.
bool shim_checked();

// Runs one kernel as cuLaunchKernel would. Returns "" or the fault: an unknown kernel, a deadlock, a failed assert; in
// checked mode also an access outside of `memory`, or a data race in shared memory.
std::string run_shim_kernel(const char* name, const unsigned (&grid)[3], const unsigned (&block)[3],
                            unsigned shared_bytes, void** arguments,
                            const std::vector<device::CheckedArgument>& memory = {});

// A Launcher with device memory in this process; launches are synchronous.
class ShimLauncher final : public kernels::cuda::Launcher {
 public:
  explicit ShimLauncher(int architecture = 75) : architecture_(architecture) {}
  void launch(const char* kernel, kernels::cuda::Grid grid, kernels::cuda::Grid block, unsigned shared_bytes,
              void** arguments) override;
  void launch_loaded(void*, kernels::cuda::Grid, kernels::cuda::Grid, void**) override { error_ = "nothing is loaded"; }
  void fill(void* to, unsigned char byte, std::size_t bytes) override { std::memset(to, byte, bytes); }
  void copy(void* to, const void* from, std::size_t bytes) override { std::memmove(to, from, bytes); }
  void* scratch(std::size_t bytes) override;  // filled with NaN bytes
  kernels::cuda::Fault* fault() override { return &fault_; }
  const kernels::cuda::StepKey* step_key() override { return &key_; }
  int multiprocessors() const override { return 2; }  // few, so that threads take several steps
  int architecture() const override { return architecture_; }
  bool product(const Product&) override { return false; }

  void set_key(std::uint64_t seed, std::uint64_t step) { key_ = {seed, step}; }
  // Faults and errors of the launches since the last call.
  std::string take_error();
  // Allows the next operation's kernels to read this memory, and to write it unless `read_only`. For checked mode only.
  void allow(const void* begin, std::size_t bytes, bool read_only) {
    memory_.push_back({static_cast<const std::byte*>(begin), bytes, 0, read_only});
  }
  // Frees the scratch memory.
  void end_operation() {
    scratch_.clear();
    memory_.clear();
  }
  int launches = 0;
  std::set<std::string> kernels;  // the launched ones

 private:
  int architecture_;
  kernels::cuda::Fault fault_;
  kernels::cuda::StepKey key_;
  struct Scratch {
    std::unique_ptr<std::byte[]> memory;
    void* data;
    std::size_t bytes;
  };
  std::vector<Scratch> scratch_;
  std::vector<device::CheckedArgument> memory_;
  std::string error_;
};

}  // namespace rille::test
