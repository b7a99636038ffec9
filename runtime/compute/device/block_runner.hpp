// BlockRunner: one OS thread that runs blocks of a kernel; the scheduler of the threads of a block. Private to
// kernel_run.cpp and block_*.cpp.
//
// The threads of a block stand in a row. `frontier` is the first one that has not begun. Whoever waits goes on with
// the thread that may run for longest, or begins the one at the frontier on a new stack. Threads between two waits ran
// through in the plain loop and are finished. A waiting thread is its stack pointer, which lies where it waits: at the
// barrier, in its warp, or in the queue of those that may run.
//
// Between two calls of the runtime the kernel itself moves threads from the queue to the barrier (abi.h): offer() says
// how many it may move, collect() counts those that it has. So every call that looks at the queue begins with
// collect(), and then nothing is offered until a thread waits at a barrier.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "runtime/compute/device/fiber_stack.hpp"
#include "runtime/compute/device/kernel_fault.hpp"
#include "runtime/compute/device/kernel_run.hpp"

// What runs on a fiber is not looked at by sanitizers: they know nothing of these stacks.
#define RILLE_ON_FIBER __attribute__((no_sanitize("address", "thread", "undefined")))

namespace rille::device {

// grid.sync(): one OS thread for each block.
struct GridBarrier {
  std::mutex mutex;
  std::condition_variable changed;
  unsigned blocks = 0, arrived = 0, generation = 0;
  bool broken = false;
  bool wait();  // false: another block failed
  void leave(bool failed);
};

// What all runners of a launch share.
struct LaunchShared {
  const KernelRun* run = nullptr;
  RunReport* report = nullptr;
  GridBarrier* grid = nullptr;
  std::atomic<unsigned> next{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;  // of the report
};

class alignas(64) BlockRunner : public rille_abi::Worker {
 public:
  BlockRunner();
  ~BlockRunner();
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  bool prepare(LaunchShared& launch);  // false: no memory
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

  // Called by the kernel.
  static unsigned on_barrier(Worker*, unsigned thread, unsigned predicate, const void* site);
  static rille_abi::u64 on_warp(Worker*, unsigned thread, rille_abi::WarpKind, unsigned mask, rille_abi::u64 value,
                                unsigned from, const void* site);
  static void on_grid_barrier(Worker*, unsigned thread, const void* site);
  static void on_say(Worker*, const char* text, unsigned bytes);
  static void on_access(Worker*, unsigned thread, const void* at, unsigned bytes, unsigned kind, const void* site);
  static void on_bad_index(Worker*, unsigned thread, const char* type, rille_abi::u64 index, const char* file,
                           unsigned line);
  static void on_failed(Worker*, unsigned thread, const char* text, const char* file, unsigned line);

  // The row of threads (block_runner.cpp).
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
  void finish(unsigned from, unsigned to);  // threads [from, to) are done
  void finished_some();                     // whoever waited for them need not any more
  void push_ready(void* stack) { ready_[tail_++ & ready_mask_] = stack; }
  void* pop_ready() { return ready_[head_++ & ready_mask_]; }
  // Waits, with its stack noted in *where, until somebody puts it into the queue.
  __attribute__((always_inline)) void suspend(void** where, bool offers) {
    if (head_ == tail_) return go_on(where);
    // Hundreds of stacks do not fit into the first cache: fetch the one that comes soon.
    const auto* soon = static_cast<const char*>(ready_[(head_ + 4) & ready_mask_]);
    __builtin_prefetch(soon);
    __builtin_prefetch(soon + 128);
    __builtin_prefetch(soon + 192);
    void* next = pop_ready();
    if (offers) offer();
    switch_stack(where, next, static_cast<Worker*>(this));
  }
  __attribute__((noinline)) void go_on(void** where);  // nobody is in the queue
  static void fiber(void* self);
  void run_fiber();
  bool unstick();
  void give_up(const Violation& v);
  void fail(const Violation& v);  // gives up and leaves the fiber: does not return
  Violation of_fault() const;
  void leave_block() { switch_stack(&nowhere_, main_, static_cast<Worker*>(this)); }

  // Barriers and warps (block_waits.cpp).
  void release_barrier(unsigned waiting);  // of the threads that came, how many are in the list
  bool check_barrier_sites(unsigned thread, const void* site);
  // `self`: the lane that runs, and is not put into the queue; 32: none of them.
  bool try_complete(unsigned warp, std::uint32_t mask, std::uint8_t kind, unsigned self);
  void complete(unsigned warp, std::uint32_t group, std::uint8_t kind, unsigned self);
  std::uint32_t there(unsigned warp) const;  // lanes that exist and are not finished
  Violation deadlock() const;

  LaunchShared* launch_ = nullptr;
  FiberStacks stacks_;
  void* main_ = nullptr;  // where run_blocks() waits
  void* nowhere_ = nullptr;
  std::byte* memory_ = nullptr;  // dynamic shared memory
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
  void** ready_ = lists_[0];                         // the queue
  void** arrivals_ = lists_[1];                      // who waits at the barrier, in the order in which they came
  void* lists_[2][rille_abi::threads_max + 8] = {};  // 8: kernels look a little ahead in the queue
  Warp warps_[rille_abi::threads_max / 32];
};

}  // namespace rille::device
