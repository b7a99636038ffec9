// KernelChild: the process of one kernel, and its limits. A thread of its own starts and outlives it, because the
// system ends the process when that thread ends; so the process also ends if the runner is killed. A confined process
// has limits: the system limits its address space; its threads, its memory and its computing outside of launches are
// checked, and a process that exceeds a limit is killed. Between launches the thread checks. Any thread, but one at a
// time.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "runtime/core/loop/spawn.hpp"

namespace rille::device {

// Memory of the process besides the tensors of a launch.
constexpr std::int64_t kernel_memory_bytes = std::int64_t{1} << 30;
// Address space for each thread: its stack, a heap of the C library, and the stacks of a block (FiberStacks).
constexpr std::int64_t kernel_thread_bytes = std::int64_t{256} << 20;

class KernelChild {
 public:
  // The process may compute until rest() is called. memory: the memfd that it shares with the runner.
  KernelChild(Spawn what, bool confined, int memory);
  ~KernelChild();

  const Error* failure() const { return failure_ ? &*failure_ : nullptr; }
  // launch: a launch begins; rest: it has ended. The bytes are added to kernel_memory_bytes.
  void launch(std::int64_t memory_bytes, std::int64_t address_bytes);
  void rest();
  void look();  // call every 10 ms or so while the process may compute
  clockid_t clock() const { return clock_; }
  std::int64_t processor_ns() const;  // that the process has used; after end(): in all
  // Ends the process, if it has not ended by itself. Returns its exit status.
  int end();
  // The reason why look() has killed the process: "it has started more than 264 threads"; "": it has not.
  std::string why();

 private:
  void keep(const Spawn& what);
  void look_locked();
  void limit_address_space(std::int64_t more_bytes);

  const bool confined_;
  const int memory_;  // a copy of the descriptor
  std::thread thread_;
  std::mutex mutex_;  // guards the members below, once the process has started
  std::condition_variable changed_;
  bool started_ = false, over_ = false, computes_ = true;
  pid_t pid_ = 0;
  clockid_t clock_ = 0;
  int status_ = 0;
  std::int64_t used_ns_ = 0;  // processor time of the process in all, once it has been waited for
  std::int64_t memory_bytes_ = 0, rested_ns_ = 0;
  std::optional<std::int64_t> address_bytes_;  // limit of its address space when the kernel has been loaded
  std::string why_;
  std::optional<Error> failure_;
};

}  // namespace rille::device
