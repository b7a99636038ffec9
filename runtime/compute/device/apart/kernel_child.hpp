// KernelChild: the process of one kernel, and what it may take. A thread starts and outlives it, since the system ends
// a process with the thread that started it: so it ends also where this process is killed.
//
// The address space of the process is limited by the system; its threads, its memory and what it computes without a
// launch are looked at, and a process that takes too much is killed. Between launches the thread here looks. Any
// thread, but one at a time.
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

// Beside the tensors of a launch.
constexpr std::int64_t kernel_memory_bytes = std::int64_t{1} << 30;
// Of address space for each thread: its stack, a heap of the C library, and the stacks of a block (FiberStacks).
constexpr std::int64_t kernel_thread_bytes = std::int64_t{256} << 20;

class KernelChild {
 public:
  explicit KernelChild(Spawn what);  // it may compute until rest() is called
  ~KernelChild() { end(); }

  const Error* failure() const { return failure_ ? &*failure_ : nullptr; }
  // A launch begins or is over. The bytes are beside kernel_memory_bytes.
  void launch(std::int64_t memory_bytes, std::int64_t address_bytes);
  void rest();
  void look();  // to be called every 10 ms or so while it may compute
  clockid_t clock() const { return clock_; }
  // Ends the process, if it has not ended by itself. Returns its exit status.
  int end();
  // Why look() has killed the process: "it has started more than 264 threads"; "": it has not.
  std::string why();

 private:
  void keep(const Spawn& what);
  void look_locked();
  void limit_address_space(std::int64_t more_bytes);
  std::int64_t processor_ns() const;

  std::thread thread_;
  std::mutex mutex_;  // guards what follows, once the process has started
  std::condition_variable changed_;
  bool started_ = false, over_ = false, computes_ = true;
  pid_t pid_ = 0;
  clockid_t clock_ = 0;
  int status_ = 0;
  std::int64_t memory_bytes_ = 0, rested_ns_ = 0;
  std::optional<std::int64_t> address_bytes_;  // of its address space when it has loaded the kernel
  std::string why_;
  std::optional<Error> failure_;
};

}  // namespace rille::device
