// BlockRunner: runs blocks of a CPU kernel on one OS thread and schedules each block's CUDA threads.
//
// Threads of a block start in the order of their numbers; `frontier` is the first thread that has not begun. When a
// thread waits, execution continues with the thread that has been ready longest, or starts the frontier's thread on a
// new stack. A thread that never waits runs inside the kernel's plain loop and needs no stack of its own. A waiting
// thread is represented by its stack pointer, stored at the barrier, in its warp, or in the ready queue.
//
// Between two calls into the runtime, compiled kernel code itself moves threads from the ready queue to the barrier
// (abi.h): offer() sets how many threads it may move, collect() counts the moved ones. Every function that uses the
// queue therefore calls collect() first; no further move is allowed until a thread waits at a barrier.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "runtime/compute/device/fiber_stack.hpp"
#include "runtime/compute/device/kernel_fault.hpp"
#include "runtime/compute/device/kernel_run.hpp"

// Sanitizers do not know the fibers' stacks, so functions that run on a fiber are not instrumented.
#define RILLE_ON_FIBER __attribute__((no_sanitize("address", "thread", "undefined")))

namespace rille::device {

// The barrier behind grid.sync(), at which one OS thread per block waits.
struct GridBarrier {
  std::mutex mutex;
  std::condition_variable changed;
  unsigned blocks = 0, arrived = 0, generation = 0;
  bool broken = false;
  bool wait();  // false: another block of the grid failed
  void leave(bool failed);
};

// State shared by all BlockRunners of one kernel launch.
struct LaunchShared {
  const KernelRun* run = nullptr;
  RunReport* report = nullptr;
  GridBarrier* grid = nullptr;
  std::atomic<unsigned> next{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;  // guards *report
};

class alignas(64) BlockRunner : public rille_abi::Worker {
 public:
  BlockRunner();
  ~BlockRunner();
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  bool prepare(LaunchShared& launch);  // false: memory for stacks or shared memory is missing
  void run_blocks(unsigned first, unsigned last);

 private:
  struct Warp {
    std::uint32_t waiting = 0, finished = 0;
    std::uint32_t mask[32];
    std::uint64_t value[32], result[32];
    const void* site[32];
    void* stack[32];
    std::uint8_t kind[32], from[32];
  };

  // Callbacks that the compiled kernel calls.
  static unsigned on_barrier(Worker*, unsigned thread, unsigned predicate, const void* site);
  static rille_abi::u64 on_warp(Worker*, unsigned thread, rille_abi::WarpKind, unsigned mask, rille_abi::u64 value,
                                unsigned from, const void* site);
  static void on_grid_barrier(Worker*, unsigned thread, const void* site);
  static void on_say(Worker*, const char* text, unsigned bytes);
  static void on_access(Worker*, unsigned thread, const void* at, unsigned bytes, unsigned kind, const void* site);
  static void on_bad_index(Worker*, unsigned thread, const char* type, rille_abi::u64 index, const char* file,
                           unsigned line);
  static void on_failed(Worker*, unsigned thread, const char* text, const char* file, unsigned line);

  // Starting, suspending and finishing threads (block_runner.cpp).
  void begin_block();
  void collect() {
    head_ += at;
    arrived_ += at;
    at = limit = 0;
  }
  void offer();
  void reached(unsigned thread) {
    if (thread >= frontier_) cross_frontier(thread);
  }
  void cross_frontier(unsigned thread);
  void finish(unsigned from, unsigned to);  // marks threads [from, to) as finished
  void finished_some();                     // releases waiting threads if all threads they waited for have finished
  void push_ready(void* stack) { ready_[tail_++ & ready_mask_] = stack; }
  void* pop_ready() { return ready_[head_++ & ready_mask_]; }
  // Stores the running thread's stack pointer in *where and suspends the thread until it is taken from the queue.
  __attribute__((always_inline)) void suspend(void** where, bool offers) {
    if (head_ == tail_) return go_on(where);
    // Hundreds of stacks do not fit into the L1 cache: prefetch the stack of a thread that runs soon.
    const auto* soon = static_cast<const char*>(ready_[(head_ + 4) & ready_mask_]);
    __builtin_prefetch(soon);
    __builtin_prefetch(soon + 128);
    __builtin_prefetch(soon + 192);
    void* next = pop_ready();
    if (offers) offer();
    switch_stack(where, next, static_cast<Worker*>(this));
  }
  __attribute__((noinline)) void go_on(void** where);  // suspends if the ready queue is empty
  static void fiber(void* self);
  void run_fiber();
  bool unstick();
  void give_up(const Violation& v);
  void fail(const Violation& v);  // records the violation and leaves the fiber; does not return
  Violation of_fault() const;
  void leave_block() { switch_stack(&nowhere_, main_, static_cast<Worker*>(this)); }

  // Block barriers and warp operations (block_waits.cpp).
  void release_barrier(unsigned waiting);  // waiting: how many threads in arrivals_ to release
  bool check_barrier_sites(unsigned thread, const void* site);
  // `self`: the warp lane that is running now, so it is not put into the queue; 32: no lane of the warp is running.
  bool try_complete(unsigned warp, std::uint32_t mask, std::uint8_t kind, unsigned self);
  void complete(unsigned warp, std::uint32_t group, std::uint8_t kind, unsigned self);
  std::uint32_t there(unsigned warp) const;  // bit mask of the warp's lanes that exist and have not finished
  Violation deadlock() const;

  LaunchShared* launch_ = nullptr;
  FiberStacks stacks_;
  void* main_ = nullptr;  // stack pointer of run_blocks(), which waits while fibers run
  void* nowhere_ = nullptr;
  std::byte* memory_ = nullptr;  // the block's dynamic shared memory
  std::size_t memory_bytes_ = 0;

  unsigned threads_ = 0, finished_ = 0;
  unsigned first_ = 0, last_ = 0;
  bool failed_ = false, checked_ = false, guarded_ = false;
  FaultGuard guard_;
  unsigned at_grid_ = 0;
  const void* barrier_site_ = nullptr;
  unsigned barrier_thread_ = 0;
  int free_stacks_ = 0;
  std::uint16_t free_stack_[rille_abi::threads_max];
  int starting_stack_ = 0;
  unsigned frontier_ = 0, arrived_ = 0, alive_ = 0, head_ = 0, tail_ = 0, ready_mask_ = 0;
  void** ready_ = lists_[0];                         // ring buffer: queue of threads ready to continue
  void** arrivals_ = lists_[1];                      // threads waiting at the barrier, in order of arrival
  void* lists_[2][rille_abi::threads_max + 8] = {};  // + 8: kernels prefetch beyond the queue's end
  Warp warps_[rille_abi::threads_max / 32];
};

}  // namespace rille::device
