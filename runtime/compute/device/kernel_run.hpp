// Runs a compiled kernel (kernels/shim/abi.h) on the CPU: blocks in parallel with OpenMP, the threads of a block in a
// plain loop. Only a thread that waits (at a barrier or shuffle) gets its own stack and is suspended there; nothing
// runs twice. A kernel without barriers costs a loop; one with barriers costs a stack switch per thread and wait.
//
// Threads: run_kernel() on the lane, with OpenMP below it. Several may run at once only for kernels of different
// modules. A kernel that never ends is never stopped.
#pragma once

#include <memory>
#include <string>

#include "kernels/shim/abi.h"
#include "runtime/compute/device/kernel_check.hpp"
#include "runtime/core/base/result.hpp"

namespace rille::device {

class BlockRunner;

// Runners and their stacks, reused by later launches.
class RunnerPool {
 public:
  RunnerPool();
  ~RunnerPool();
  std::unique_ptr<BlockRunner> take();
  void give(std::unique_ptr<BlockRunner> runner);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct KernelRun {
  const rille_abi::Kernel* kernel = nullptr;
  unsigned grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  unsigned shared_bytes = 0;
  void** arguments = nullptr;    // a pointer to each value
  bool cooperative = false;      // grid.sync() works: each block has an OS thread
  MemoryCheck* check = nullptr;  // checked mode: one OS thread runs all
};

struct RunReport {
  Violation violation;         // the first one; Kind::none: no error
  std::string said;            // printf output; at most said_bytes_max
  bool out_of_memory = false;  // no stacks, or no shared memory
};
constexpr std::size_t said_bytes_max = 1 << 20;
constexpr unsigned cooperative_blocks_max = 256;

void run_kernel(const KernelRun& run, RunnerPool& pool, RunReport& report);

}  // namespace rille::device
