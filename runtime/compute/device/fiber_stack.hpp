// The stacks on which CUDA threads of a block wait for each other, and the function that switches between stacks: a few
// instructions, no system call. For x86-64 with the System V ABI. A guard page below each stack makes an overflow fault
// instead of overwriting the neighbouring stack.
//
// Threads: a FiberStacks belongs to one OS thread; a fiber must continue on the OS thread that started it.
#pragma once

#include <cstddef>
#include <vector>

namespace rille::device {

// Stores this stack's pointer in *from and continues at `to`, a pointer stored by an earlier switch. Returns when
// another switch continues at *from. The function is inline, so that the caller saves only the registers that it needs.
// It ends in a jump instead of a return, so that the processor's return-address predictor stays in step with the
// callers; threads that wait at one place have the same callers.
__attribute__((always_inline)) inline void switch_stack(void** from, void* to, void* worker) {
  asm volatile(
      "leaq -128(%%rsp), %%rsp\n\t"  // skips the caller's red zone
      "pushq %%rbp\n\t"
      "leaq 1f(%%rip), %%rax\n\t"
      "pushq %%rax\n\t"
      "movq %%rsp, (%0)\n\t"
      "movq %1, %%rsp\n\t"
      "movq %2, %%r15\n\t"  // compiled kernels expect `worker` in r15 (kernels/shim/core.h)
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
  // 33 pages: with a power of two all stack tops would compete for a few sets of the TLB.
  static constexpr std::size_t stack_bytes = 132 << 10;
  static constexpr int stacks_max = 1024;

  FiberStacks() = default;
  ~FiberStacks();
  FiberStacks(const FiberStacks&) = delete;
  FiberStacks& operator=(const FiberStacks&) = delete;

  // Reserves address space for all stacks; the system allocates a page at its first use. False: out of memory.
  bool reserve();
  // A stack on which `body(argument)` starts at the first switch to it; body must never return.
  void* make(int number, void (*body)(void*), void* argument);
  bool holds(const void* at) const;  // whether the address is in one of the stacks

 private:
  std::byte* base_ = nullptr;
  std::vector<bool> guarded_;
};

}  // namespace rille::device
