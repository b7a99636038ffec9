#include "runtime/compute/device/fiber_stack.hpp"

#include <sys/mman.h>

#include <cstdint>

#ifndef __x86_64__
#error "fiber_stack.cpp is written for x86-64"
#endif

// The first switch to a new stack continues here: pops an argument and a function and calls the function.
asm(R"(
.text
.p2align 4
.hidden rille_fiber_begin
.type rille_fiber_begin, @function
rille_fiber_begin:
  popq %rdi
  popq %rax
  callq *%rax
  ud2
.size rille_fiber_begin, .-rille_fiber_begin
)");

extern "C" void rille_fiber_begin();

namespace rille::device {

FiberStacks::~FiberStacks() {
  if (base_) munmap(base_, stack_bytes * stacks_max);
}

bool FiberStacks::reserve() {
  if (base_) return true;
  void* at = mmap(nullptr, stack_bytes * stacks_max, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return false;
  base_ = static_cast<std::byte*>(at);
  guarded_.assign(stacks_max, false);
  return true;
}

void* FiberStacks::make(int number, void (*body)(void*), void* argument) {
  std::byte* low = base_ + std::size_t(number) * stack_bytes;
  if (!guarded_[std::size_t(number)]) {
    mprotect(low, 4096, PROT_NONE);
    guarded_[std::size_t(number)] = true;
  }
  // Stack tops are staggered within a page: at equal offsets all stacks would compete for the same L1 cache lines.
  // Shifting each stack by 192 bytes (three lines) more than the previous one uses all 64 sets of the cache.
  const std::size_t shift = std::size_t(number) * 192 % 4096;
  auto* top = reinterpret_cast<std::uint64_t*>(low + stack_bytes - 64 - shift);
  *--top = reinterpret_cast<std::uint64_t>(body);
  *--top = reinterpret_cast<std::uint64_t>(argument);
  *--top = reinterpret_cast<std::uint64_t>(&rille_fiber_begin);
  return top;
}

bool FiberStacks::holds(const void* at) const {
  const auto* p = static_cast<const std::byte*>(at);
  return base_ && p >= base_ && p < base_ + stack_bytes * stacks_max;
}

}  // namespace rille::device
