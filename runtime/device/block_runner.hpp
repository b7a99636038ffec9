// BlockRunner: one OS thread that runs blocks of a kernel; the scheduler of the threads of a block. Private to
// kernel_run.cpp and block_*.cpp.
//
// The threads of a block stand in a row. `frontier_` is the first one that has not begun. Whoever waits goes on with
// the next thread in the row that may run, or begins the one at the frontier on a new stack. Threads between two waits
// ran through in the plain loop and are finished.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "runtime/device/fiber_stack.hpp"
#include "runtime/device/kernel_run.hpp"

// What runs on a fiber is not looked at by sanitizers: they know nothing of these stacks.
#define RILLE_ON_FIBER __attribute__((no_sanitize("address", "thread", "undefined")))

namespace rille::device {

// grid.sync(): one OS thread for each block.
struct GridBarrier {
  std::mutex mutex;
  std::condition_variable changed;
  unsigned blocks = 0, arrived = 0, generation = 0;
  bool broken = false;
  bool wait();                             // false: another block failed
  void leave(bool failed);
};

// What all runners of a launch share.
struct LaunchShared {
  const KernelRun* run = nullptr;
  RunReport* report = nullptr;
  GridBarrier* grid = nullptr;
  std::atomic<unsigned> next{0};
  std::atomic<bool> stop{false};
  std::mutex mutex;                        // of the report
};

class BlockRunner : public rille_abi::Worker {
 public:
  BlockRunner();
  ~BlockRunner();
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  bool prepare(LaunchShared& launch);      // false: no memory
  void run_blocks(unsigned first, unsigned last);

 private:
  struct Warp {
    std::uint32_t waiting = 0, finished = 0;
    std::uint32_t mask[32];
    std::uint64_t value[32], result[32];
    const void* site[32];
    std::uint8_t kind[32], from[32];
  };
  static constexpr unsigned words = rille_abi::threads_max / 64;

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
  void reached(unsigned thread) { if (thread >= frontier_) cross_frontier(thread); }
  void cross_frontier(unsigned thread);
  void finish(unsigned from, unsigned to);           // threads [from, to) are done
  void finished_some();                              // whoever waited for them need not any more
  int next_ready(unsigned from) const;
  void ready(unsigned thread) { ready_[thread / 64] |= std::uint64_t(1) << (thread % 64); }
  void suspend(unsigned thread);
  void go_on(void** from);                           // to the next thread that may run; at worst gives up
  static void fiber(void* self);
  void run_fiber();
  bool unstick();
  void give_up(const Violation& v);                  // ends the block; on a fiber it does not return
  void leave_block() { rille_switch_stack(&nowhere_, main_); }

  // Barriers and warps (block_waits.cpp).
  void release_barrier();
  bool check_barrier_sites(unsigned thread, const void* site);
  bool try_complete(unsigned warp, std::uint32_t mask, std::uint8_t kind);
  void complete(unsigned warp, std::uint32_t group, std::uint8_t kind);
  std::uint32_t there(unsigned warp) const;          // lanes that exist and are not finished
  Violation deadlock() const;

  LaunchShared* launch_ = nullptr;
  FiberStacks stacks_;
  void* main_ = nullptr;                             // where run_blocks() waits
  void* nowhere_ = nullptr;
  std::byte* memory_ = nullptr;                      // dynamic shared memory
  std::size_t memory_bytes_ = 0;

  unsigned threads_ = 0, frontier_ = 0, finished_ = 0;
  unsigned first_ = 0, last_ = 0;
  bool block_done_ = false, ran_through_ = false, failed_ = false;
  unsigned arrived_ = 0, count_ = 0, result_ = 0, at_grid_ = 0;
  const void* barrier_site_ = nullptr;
  unsigned barrier_thread_ = 0;
  std::uint64_t ready_[words] = {}, at_barrier_[words] = {};
  int free_stacks_ = 0;
  std::uint16_t free_stack_[rille_abi::threads_max];
  int starting_stack_ = 0;
  void* stack_[rille_abi::threads_max];              // where a waiting thread goes on
  Warp warps_[rille_abi::threads_max / 32];
};

}  // namespace rille::device
