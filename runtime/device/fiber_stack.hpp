// The stacks on which CUDA threads of a block wait for each other, and the switch between them: twelve instructions,
// no system call. x86-64, System V. A stack has a guard page below it: running over its end ends the process there and
// then, rather than writing into a neighbour.
//
// Threads: a FiberStacks belongs to one OS thread; a fiber that has begun on it must not be continued by another.
#pragma once

#include <cstddef>
#include <vector>

namespace rille::device {

// Leaves this stack, noting where in *from, and goes on where `to` was noted. Returns when somebody switches back.
extern "C" void rille_switch_stack(void** from, void* to);

class FiberStacks {
 public:
  static constexpr std::size_t stack_bytes = 128 << 10;
  static constexpr int stacks_max = 1024;

  FiberStacks() = default;
  ~FiberStacks();
  FiberStacks(const FiberStacks&) = delete;
  FiberStacks& operator=(const FiberStacks&) = delete;

  // Reserves address space; memory comes with use. False: the machine refuses.
  bool reserve();
  // A stack on which `body(argument)` begins at the first switch to it; body must never return.
  void* make(int number, void (*body)(void*), void* argument);
  bool holds(const void* at) const;        // is that an address in one of the stacks?

 private:
  std::byte* base_ = nullptr;
  std::vector<bool> guarded_;
};

}  // namespace rille::device
