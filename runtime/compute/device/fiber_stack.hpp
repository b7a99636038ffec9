// The stacks on which CUDA threads of a block wait for each other, and the switch between them: a few instructions, no
// system call. x86-64, System V. A guard page below each stack makes an overflow fault instead of overwriting a
// neighbour.
//
// Threads: a FiberStacks belongs to one OS thread; a fiber started there must not continue on another.
#pragma once

#include <cstddef>
#include <vector>

namespace rille::device {

// Leaves this stack, storing its pointer in *from, and continues at `to`, stored the same way. Returns when another
// switch comes back. Inline, so that the caller saves only the registers that it needs. Ends in a jump, not a return,
// so the processor's return-address predictor keeps matching the callers; threads waiting at one place have the same
// callers.
__attribute__((always_inline)) inline void switch_stack(void** from, void* to, void* worker) {
  asm volatile(
      "leaq -128(%%rsp), %%rsp\n\t"  // the caller's red zone
      "pushq %%rbp\n\t"
      "leaq 1f(%%rip), %%rax\n\t"
      "pushq %%rax\n\t"
      "movq %%rsp, (%0)\n\t"
      "movq %1, %%rsp\n\t"
      "movq %2, %%r15\n\t"  // where compiled kernels expect it (kernels/shim/core.h)
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
  // 33 pages: with a power of two all tops would map to a few sets of the TLB.
  static constexpr std::size_t stack_bytes = 132 << 10;
  static constexpr int stacks_max = 1024;

  FiberStacks() = default;
  ~FiberStacks();
  FiberStacks(const FiberStacks&) = delete;
  FiberStacks& operator=(const FiberStacks&) = delete;

  // Reserves address space; pages are allocated at first use. False: out of memory.
  bool reserve();
  // A stack on which `body(argument)` starts at the first switch to it; body must never return.
  void* make(int number, void (*body)(void*), void* argument);
  bool holds(const void* at) const;  // whether the address is in one of the stacks

 private:
  std::byte* base_ = nullptr;
  std::vector<bool> guarded_;
};

}  // namespace rille::device
