// Captured sequences (CUDA graphs).
#include <utility>

#include "runtime/compute/device/cuda/card.hpp"
#include "runtime/core/base/error.hpp"

namespace rille::device::cuda {

// Captures this thread only: others may allocate meanwhile. Until now an operation's scratch memory may have come from
// several blocks, each too small for all of it; in a capture nothing can be allocated, so it must come from one block.
bool Card::begin_capture(Failure& f) {
  if (alive(f) && scratch_wanted > (scratch ? scratch->bytes : 0)) {
    Failure ignored;  // then the capture fails and reports the error
    if (auto grown = allocate_block(scratch_wanted, ignored)) scratch = std::move(grown);
  }
  if (!alive(f) || !ok(driver.cuStreamBeginCapture(captures, cu::capture_thread_local), "capturing", f)) return false;
  capturing = true;
  return true;
}

Sequence* Card::end_capture(Failure& f) {
  if (!capturing) {
    refuse(f, int(ErrorKind::internal), "", "the capture of a CUDA graph was ended without having begun");
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

// The driver frees a running graph once it is done; ~Block waits before it frees the scratch memory.
void Card::drop(Sequence* sequence) {
  driver.cuGraphExecDestroy(sequence->exec);
  delete sequence;
}

}  // namespace rille::device::cuda
