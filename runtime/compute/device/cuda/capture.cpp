// Captures sequences of calls as CUDA graphs and replays them.
#include <utility>

#include "runtime/compute/device/cuda/card.hpp"
#include "runtime/core/base/error.hpp"

namespace rille::device::cuda {

// Starts capturing the calls of this thread; other threads may allocate meanwhile. Scratch memory cannot be allocated
// during a capture, so one block must be large enough for every operation: if operations have used several blocks
// together so far, allocates one of their total size first.
bool Card::begin_capture(Failure& f) {
  if (alive(f) && scratch_wanted > (scratch ? scratch->bytes : 0)) {
    Failure ignored;  // if no memory is free, the capture fails later and reports it
    if (auto grown = allocate_block(scratch_wanted, ignored)) scratch = std::move(grown);
  }
  if (!alive(f) || !ok(driver.cuStreamBeginCapture(captures, cu::capture_thread_local), "capturing", f)) return false;
  capturing = true;
  return true;
}

Sequence* Card::end_capture(Failure& f) {
  if (!capturing) {
    refuse(f, int(ErrorKind::internal), "this is a bug of Rille: please report it",
           "the capture of a CUDA graph was ended without having begun");
    return nullptr;
  }
  capturing = false;
  CUgraph graph = nullptr;
  if (!ok(driver.cuStreamEndCapture(captures, &graph), "capturing", f) || !graph) return nullptr;
  CUgraphExec exec = nullptr;
  const bool made = ok(driver.cuGraphInstantiate(&exec, graph, 0), "making a graph of what was captured", f);
  driver.cuGraphDestroy(graph);
  if (!made) return nullptr;
  auto* const sequence = new Sequence;
  sequence->exec = exec;
  if (scratch) sequence->scratch.push_back(scratch);
  return sequence;
}

bool Card::replay(Sequence& sequence, std::uint64_t seed, std::uint64_t step, Failure& f) {
  return alive(f) && set_key(seed, step, f) && ok(driver.cuGraphLaunch(sequence.exec, compute), "replaying", f);
}

// If the graph is running, the driver frees it when it is done; ~Block waits before it frees the scratch memory.
void Card::drop(Sequence* sequence) {
  driver.cuGraphExecDestroy(sequence->exec);
  delete sequence;
}

}  // namespace rille::device::cuda
