// Runs a compiled kernel (kernels/shim/abi.h) on the CPU: blocks run in parallel with OpenMP, the threads of a block in
// a plain loop. Only a thread that waits (at a barrier or a shuffle) gets a stack of its own and is suspended on it; no
// code of a thread runs twice. A kernel without barriers costs no more than a loop; one with barriers costs a stack
// switch per thread and wait.
//
// Threads: run_kernel() on the lane, where it starts OpenMP threads. Two calls may run at once only for kernels of
// different libraries. Nothing stops a kernel that never ends.
#pragma once

#include <memory>
#include <string>

#include "kernels/shim/abi.h"
#include "runtime/compute/device/kernel_check.hpp"
#include "runtime/core/base/result.hpp"

namespace rille::device {

class BlockRunner;

// Keeps BlockRunners and their stacks for later launches.
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
  void** arguments = nullptr;    // one pointer per argument, to its value
  bool cooperative = false;      // each block runs on an OS thread of its own, as grid.sync() requires
  MemoryCheck* check = nullptr;  // null: not checked mode. Checked mode runs all blocks on one OS thread
};

struct RunReport {
  Violation violation;         // the first violation; Kind::none: no error
  std::string said;            // printf output; text beyond said_bytes_max bytes is dropped
  bool out_of_memory = false;  // memory for stacks or shared memory was missing
};
constexpr std::size_t said_bytes_max = 1 << 20;
constexpr unsigned cooperative_blocks_max = 256;

void run_kernel(const KernelRun& run, RunnerPool& pool, RunReport& report);

}  // namespace rille::device
