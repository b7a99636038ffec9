#include "runtime/device/block_runner.hpp"

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
  return (memory_ || run.shared_bytes == 0) && stacks_.reserve();
}

void BlockRunner::begin_block() {
  frontier_ = finished_ = arrived_ = count_ = at_grid_ = 0;
  block_done_ = ran_through_ = false;
  barrier_site_ = nullptr;
  std::memset(ready_, 0, sizeof ready_);
  std::memset(at_barrier_, 0, sizeof at_barrier_);
  for (unsigned w = 0; w * 32 < threads_; ++w) warps_[w].waiting = warps_[w].finished = 0;
  // Taken from the end: a block uses few.
  free_stacks_ = int(threads_);
  for (unsigned i = 0; i < threads_; ++i) free_stack_[i] = std::uint16_t(threads_ - 1 - i);
}

void BlockRunner::run_blocks(unsigned first, unsigned last) {
  failed_ = false;
  while (first < last && !failed_ && !launch_->stop.load(std::memory_order_relaxed)) {
    begin_block();
    first_ = first;
    last_ = last;
    if (launch_->run->check) {                       // its notes are about one block
      last_ = first + 1;
      launch_->run->check->begin_block();
    }
    starting_stack_ = free_stack_[--free_stacks_];
    rille_switch_stack(&main_, stacks_.make(starting_stack_, fiber, this));
    first = block_at + 1;
  }
}

RILLE_ON_FIBER void BlockRunner::fiber(void* self) { static_cast<BlockRunner*>(self)->run_fiber(); }

// What runs on each stack: threads from the frontier on, until one of them has waited, and is done.
RILLE_ON_FIBER void BlockRunner::run_fiber() {
  const int mine = starting_stack_;
  const rille_abi::Run run = launch_->run->kernel->run;
  void** arguments = launch_->run->arguments;
  for (;;) {
    const unsigned from = frontier_;
    const unsigned last = from == 0 ? last_ : block_at + 1;
    const unsigned thread = run(this, arguments, from == 0 ? first_ : block_at, last, from);
    if (thread == rille_abi::all_done) finish(frontier_, threads_);
    else finish(thread, thread + 1);
    if (thread == rille_abi::all_done) frontier_ = threads_;
    if (finished_ == threads_) leave_block();
    finished_some();
    const int next = next_ready(thread == rille_abi::all_done ? 0 : thread);
    if (next >= 0) {
      free_stack_[free_stacks_++] = std::uint16_t(mine);
      ready_[next / 64] &= ~(std::uint64_t(1) << (next % 64));
      rille_switch_stack(&nowhere_, stack_[next]);
    } else if (frontier_ >= threads_) {
      free_stack_[free_stacks_++] = std::uint16_t(mine);
      go_on(&nowhere_);
    }
  }
}

RILLE_ON_FIBER void BlockRunner::cross_frontier(unsigned thread) {
  if (thread > frontier_) finish(frontier_, thread);
  frontier_ = thread + 1;
}

RILLE_ON_FIBER void BlockRunner::finish(unsigned from, unsigned to) {
  finished_ += to - from;
  for (unsigned t = from; t < to;) {
    const unsigned lane = t % 32, n = to - t < 32 - lane ? to - t : 32 - lane;
    warps_[t / 32].finished |= (n == 32 ? ~0u : ((1u << n) - 1) << lane);
    t += n;
  }
}

RILLE_ON_FIBER void BlockRunner::finished_some() {
  if (arrived_ && arrived_ == threads_ - finished_) release_barrier();
  for (unsigned w = 0; w * 32 < threads_; ++w) {
    while (warps_[w].waiting) {
      bool done = false;
      for (std::uint32_t left = warps_[w].waiting; left && !done; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        done = try_complete(w, warps_[w].mask[lane], warps_[w].kind[lane]);
      }
      if (!done) break;
    }
  }
}

// The next thread in the row after `from` that may run, going round; -1: none.
RILLE_ON_FIBER int BlockRunner::next_ready(unsigned from) const {
  const unsigned n = (threads_ + 63) / 64, at = from / 64 % words;
  if (const auto here = ready_[at] & ~std::uint64_t(0) << (from % 64)) return int(at * 64) + __builtin_ctzll(here);
  for (unsigned i = 1; i <= n; ++i) {
    const unsigned w = at + i < n ? at + i : at + i - n;
    if (w < n && ready_[w]) return int(w * 64) + __builtin_ctzll(ready_[w]);
  }
  return -1;
}

RILLE_ON_FIBER void BlockRunner::suspend(unsigned thread) {
  const int next = next_ready(thread);
  if (next >= 0) {
    ready_[next / 64] &= ~(std::uint64_t(1) << (next % 64));
    rille_switch_stack(&stack_[thread], stack_[next]);
  } else {
    go_on(&stack_[thread]);
  }
}

RILLE_ON_FIBER void BlockRunner::go_on(void** from) {
  if (frontier_ < threads_) {
    starting_stack_ = free_stack_[--free_stacks_];
    rille_switch_stack(from, stacks_.make(starting_stack_, fiber, this));
    return;
  }
  int next = next_ready(0);
  if (next < 0 && unstick()) next = next_ready(0);
  if (next < 0) {
    give_up(deadlock());
    return;
  }
  ready_[next / 64] &= ~(std::uint64_t(1) << (next % 64));
  if (&stack_[next] == from) return;                 // it waited for itself only
  rille_switch_stack(from, stack_[next]);
}

RILLE_ON_FIBER void BlockRunner::give_up(const Violation& v) {
  failed_ = true;
  Violation mine = v;
  mine.block = block_at;
  {
    const std::lock_guard lock(launch_->mutex);
    if (launch_->report->violation.kind == Violation::Kind::none) launch_->report->violation = mine;
  }
  launch_->stop = true;
  leave_block();
}

}  // namespace rille::device
