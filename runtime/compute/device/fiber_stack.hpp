// The stacks on which CUDA threads of a block wait for each other, and the switch between them: a few instructions, no
// system call. x86-64, System V. A stack has a guard page below it: running over its end ends the process there and
// then, rather than writing into a neighbour.
//
// Threads: a FiberStacks belongs to one OS thread; a fiber that has begun on it must not be continued by another.
#pragma once

#include <cstddef>
#include <vector>

namespace rille::device {

// Leaves this stack, noting where in *from, and goes on where `to` was noted. Returns when somebody switches back.
// Inline: what calls it saves the registers that it needs, once. It ends in a jump, so the processor's own stack of
// return addresses stays as the caller's calls have made it; threads that wait in the same place have the same one.
__attribute__((always_inline)) inline void switch_stack(void** from, void* to, void* worker) {
  asm volatile(
      "leaq -128(%%rsp), %%rsp\n\t"  // what the caller may keep below its stack pointer
      "pushq %%rbp\n\t"
      "leaq 1f(%%rip), %%rax\n\t"
      "pushq %%rax\n\t"
      "movq %%rsp, (%0)\n\t"
      "movq %1, %%rsp\n\t"
      "movq %2, %%r15\n\t"  // where compiled kernels look for it (kernels/shim/core.h)
      "popq %%rax\n\t"
      "jmpq *%%rax\n"
      "1:\n\t"
      "popq %%rbp\n\t"
      "leaq 128(%%rsp), %%rsp\n\t"
      : "+D"(from), "+S"(to), "+d"(worker)
      :
      : "rax", "rbx", "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc", "xmm0", "xmm1",
        "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
        "xmm15");
}

class FiberStacks {
 public:
  // 33 pages: at a power of two all tops would fall into a few sets of the TLB.
  static constexpr std::size_t stack_bytes = 132 << 10;
  static constexpr int stacks_max = 1024;

  FiberStacks() = default;
  ~FiberStacks();
  FiberStacks(const FiberStacks&) = delete;
  FiberStacks& operator=(const FiberStacks&) = delete;

  // Reserves address space; memory comes with use. False: the machine refuses.
  bool reserve();
  // A stack on which `body(argument)` begins at the first switch to it; body must never return.
  void* make(int number, void (*body)(void*), void* argument);
  bool holds(const void* at) const;  // is that an address in one of the stacks?

 private:
  std::byte* base_ = nullptr;
  std::vector<bool> guarded_;
};

}  // namespace rille::device
