#include "runtime/compute/device/block_runner.hpp"

#include <cstdlib>
#include <cstring>

namespace rille::device {

bool GridBarrier::wait() {
  std::unique_lock lock(mutex);
  if (broken) return false;
  if (++arrived == blocks) {
    arrived = 0;
    ++generation;
    changed.notify_all();
    return true;
  }
  const unsigned mine = generation;
  changed.wait(lock, [&] { return broken || generation != mine; });
  return generation != mine;
}

void GridBarrier::leave(bool failed) {
  const std::lock_guard lock(mutex);
  broken = broken || failed;
  --blocks;
  if (blocks && arrived == blocks) {
    arrived = 0;
    ++generation;
  }
  changed.notify_all();
}

BlockRunner::BlockRunner() : Worker() {
  barrier = on_barrier;
  warp = on_warp;
  grid_barrier = on_grid_barrier;
  say = on_say;
  access = on_access;
  bad_index = on_bad_index;
  failed = on_failed;
}

BlockRunner::~BlockRunner() { std::free(memory_); }

bool BlockRunner::prepare(LaunchShared& launch) {
  launch_ = &launch;
  const KernelRun& run = *launch.run;
  std::memcpy(grid, run.grid, sizeof grid);
  std::memcpy(block, run.block, sizeof block);
  threads_ = block[0] * block[1] * block[2];
  ready_mask_ = 1;  // the queue is as small as the block allows, so that it stays in the L1 cache
  while (ready_mask_ < threads_) ready_mask_ *= 2;
  --ready_mask_;
  shared_bytes = run.shared_bytes;
  if (run.shared_bytes > memory_bytes_) {
    std::free(memory_);
    memory_bytes_ = (run.shared_bytes + 4095u) / 4096 * 4096;
    memory_ = static_cast<std::byte*>(std::aligned_alloc(4096, memory_bytes_));
    if (!memory_) memory_bytes_ = 0;
  }
  shared = memory_;
  if (run.check) {
    run.check->dynamic_shared = {memory_, run.shared_bytes};
    run.check->begin_launch();
  }
  guarded_ = prepare_for_faults();
  return (memory_ || run.shared_bytes == 0) && stacks_.reserve();
}

void BlockRunner::begin_block() {
  frontier_ = finished_ = arrived_ = count = at_grid_ = at = limit = 0;
  alive_ = threads_;
  checked_ = launch_->run->check != nullptr;
  barrier_site_ = nullptr;
  head_ = tail_ = 0;
  for (unsigned w = 0; w * 32 < threads_; ++w) warps_[w].waiting = warps_[w].finished = 0;
  // Stack numbers are taken from the end of the list, so a block that uses few stacks always uses the lowest numbers.
  free_stacks_ = int(threads_);
  for (unsigned i = 0; i < threads_; ++i) free_stack_[i] = std::uint16_t(threads_ - 1 - i);
}

void BlockRunner::run_blocks(unsigned first, unsigned last) {
  failed_ = false;
  guard_ = {&main_, static_cast<Worker*>(this), {}};
  while (first < last && !failed_ && !launch_->stop.load(std::memory_order_relaxed)) {
    begin_block();
    first_ = first;
    last_ = last;
    if (launch_->run->check) {  // MemoryCheck's records cover one block
      last_ = first + 1;
      launch_->run->check->begin_block();
    }
    starting_stack_ = free_stack_[--free_stacks_];
    void* next = stacks_.make(starting_stack_, fiber, this);
    for (;;) {
      up_guard = guarded_ ? &guard_ : nullptr;
      switch_stack(&main_, next, static_cast<Worker*>(this));
      up_guard = nullptr;
      if (guard_.fault.signal) give_up(of_fault());
      if (failed_ || finished_ == threads_) break;
      if (!unstick()) {  // no thread of the block can continue
        give_up(deadlock());
        break;
      }
      next = pop_ready();
    }
    first = block_at + 1;
  }
}

RILLE_ON_FIBER void BlockRunner::fiber(void* self) { static_cast<BlockRunner*>(self)->run_fiber(); }

// Sets `limit`, the number of threads that the kernel itself may move from the queue to the barrier. The moves must not
// empty the queue, run past the end of the ring buffer, or make the last thread arrive at the barrier.
RILLE_ON_FIBER void BlockRunner::offer() {
  const unsigned from = head_ & ready_mask_;
  ready = ready_ + from;
  arrivals = arrivals_ + arrived_;
  limit = alive_ - arrived_ - 1;
  if (limit > tail_ - head_) limit = tail_ - head_;
  if (limit > ready_mask_ + 1 - from) limit = ready_mask_ + 1 - from;
}

// Runs on each fiber stack: starts threads from the frontier on, until one of them has waited and then finished.
RILLE_ON_FIBER void BlockRunner::run_fiber() {
  const int mine = starting_stack_;
  const rille_abi::Run run = launch_->run->kernel->run;
  void** arguments = launch_->run->arguments;
  for (;;) {
    const unsigned from = frontier_;
    const unsigned last = from == 0 ? last_ : block_at + 1;
    const unsigned thread = run(this, arguments, from == 0 ? first_ : block_at, last, from);
    collect();
    if (thread == rille_abi::all_done) finish(frontier_, threads_);
    else finish(thread, thread + 1);
    if (thread == rille_abi::all_done) frontier_ = threads_;
    if (finished_ == threads_) leave_block();
    finished_some();
    if (head_ != tail_) {
      free_stack_[free_stacks_++] = std::uint16_t(mine);
      switch_stack(&nowhere_, pop_ready(), static_cast<Worker*>(this));
    } else if (frontier_ >= threads_) {
      leave_block();  // stuck: run_blocks() calls unstick()
    }
  }
}

RILLE_ON_FIBER void BlockRunner::cross_frontier(unsigned thread) {
  if (thread > frontier_) finish(frontier_, thread);
  frontier_ = thread + 1;
}

RILLE_ON_FIBER void BlockRunner::finish(unsigned from, unsigned to) {
  finished_ += to - from;
  alive_ = threads_ - finished_;
  for (unsigned t = from; checked_ && t < to; ++t) launch_->run->check->ended(t);
  for (unsigned t = from; t < to;) {
    const unsigned lane = t % 32, n = to - t < 32 - lane ? to - t : 32 - lane;
    warps_[t / 32].finished |= (n == 32 ? ~0u : ((1u << n) - 1) << lane);
    t += n;
  }
}

RILLE_ON_FIBER void BlockRunner::finished_some() {
  if (arrived_ && arrived_ == alive_) release_barrier(arrived_);
  for (unsigned w = 0; w * 32 < threads_; ++w) {
    while (warps_[w].waiting) {
      bool done = false;
      for (std::uint32_t left = warps_[w].waiting; left && !done; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        done = try_complete(w, warps_[w].mask[lane], warps_[w].kind[lane], 32);
      }
      if (!done) break;
    }
  }
}

RILLE_ON_FIBER void BlockRunner::go_on(void** where) {
  if (frontier_ < threads_) {
    starting_stack_ = free_stack_[--free_stacks_];
    switch_stack(where, stacks_.make(starting_stack_, fiber, this), static_cast<Worker*>(this));
  } else {
    switch_stack(where, main_, static_cast<Worker*>(this));  // stuck: run_blocks() calls unstick()
  }
}

Violation BlockRunner::of_fault() const {
  Violation v;
  v.kind = stacks_.holds(guard_.fault.at) ? Violation::Kind::stack : Violation::Kind::fault;
  v.number = std::uint64_t(guard_.fault.signal);
  v.offset_bytes = guard_.fault.code == SI_KERNEL ? 0 : reinterpret_cast<std::intptr_t>(guard_.fault.at);
  v.site = static_cast<const std::byte*>(guard_.fault.site) + 1;  // + 1: other sites are return addresses
  return v;
}

RILLE_ON_FIBER void BlockRunner::give_up(const Violation& v) {
  const Unguarded alone;
  failed_ = true;
  Violation mine = v;
  mine.block = block_at;
  {
    const std::lock_guard lock(launch_->mutex);
    if (launch_->report->violation.kind == Violation::Kind::none) launch_->report->violation = mine;
  }
  launch_->stop = true;
}

RILLE_ON_FIBER void BlockRunner::fail(const Violation& v) {
  give_up(v);
  leave_block();
}

}  // namespace rille::device
