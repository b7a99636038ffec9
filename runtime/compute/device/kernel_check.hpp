// Checked mode: decides whether a kernel's thread may make a memory access. MemoryCheck stores the memory range of each
// argument and the last write and read of each byte of shared memory and of each element of the arguments, as far as
// watched_elements_max goes. There is one MemoryCheck per launch, used by the only OS thread that runs the launch. Its
// functions are called on fibers: they allocate nothing and only record violations.
//
// Races in the arguments' memory: reads and writes of two threads of a block without a barrier between, and an element
// that threads of two blocks both read and then write. A result that another block reads may be published by a fence
// and an atomic, and several threads may write the same value, so other accesses of two blocks, and two writes, are not
// reported. Atomic accesses are never.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/shim/abi.h"

namespace rille::device {

// The memory to which a pointer argument gives access.
struct CheckedArgument {
  const std::byte* begin = nullptr;
  std::size_t bytes = 0;
  unsigned parameter = 0;
  bool read_only = false;
  unsigned element_bytes = 1;
};

struct MemoryRange {
  const std::byte* begin = nullptr;
  std::size_t bytes = 0;
  bool has(const void* at, std::size_t n) const {
    const auto offset = std::uintptr_t(at) - std::uintptr_t(begin);
    return offset < bytes && n <= bytes - offset;
  }
};

// Describes an error by plain numbers and pointers; the error message is made from them later, outside the fiber.
struct Violation {
  enum class Kind : std::uint8_t {
    none,
    outside,
    writes_constant,
    wild,
    shared_outside,
    race,
    global_race,  // in an argument; number: 1 if the other thread is of another block
    index,
    failed,
    deadlock,
    barriers,
    grid,
    lane,
    fault,
    beyond,  // outside of an argument; found behind its guard page, so the thread is not known
    stack
  } kind = Kind::none;
  unsigned block = 0, thread = 0, other_thread = 0;
  unsigned parameter = 0;
  std::int64_t offset_bytes = 0;  // from the start of the argument or of shared memory; for a fault, the address
  unsigned access = 0, other_access = 0, bytes = 0;
  const void* site = nullptr;
  const void* other_site = nullptr;
  const char* text = nullptr;  // a literal in the kernel's loaded library
  const char* file = nullptr;
  unsigned line = 0;
  std::uint64_t number = 0;  // for a fault, the number of the signal
};

class MemoryCheck {
 public:
  std::vector<CheckedArgument> arguments;
  MemoryRange module, thread_locals, dynamic_shared;
  bool watches_arguments = true;
  static constexpr std::size_t watched_elements_max = 4 << 20;  // in all

  void begin_launch();  // allocates the records of shared memory; call it after the ranges above are set
  void begin_block();
  void barrier() {
    ++epoch_;
    left_ = -1;
  }
  // A thread has ended. One that has written to an argument since the last barrier has gone past the barrier at which
  // others wait; one that has not may have left early, as `if (i >= n) return;` does, which GPUs since Volta allow.
  void ended(unsigned thread) {
    if (wrote_[thread] == epoch_) left_ = int(thread);
  }
  int left_writing() const { return left_; }  // such a thread since the last barrier; -1: none
  void warp_barrier(unsigned warp) { ++warp_epoch_[warp]; }
  // Checks one access; Kind::none: the access is allowed.
  Violation look(unsigned thread, const void* at, std::size_t bytes, unsigned kind, const void* site);

 private:
  struct Access {
    const void* site = nullptr;
    std::uint32_t epoch = 0, warp_epoch = 0;
    std::uint16_t thread = 0;
    std::uint8_t kind = 0;
  };
  struct Cell {
    Access writer, reader;
  };
  bool clash(const Access& before, unsigned thread, unsigned kind) const;
  Violation shared(std::vector<Cell>& cells, const MemoryRange& range, unsigned thread, const void* at,
                   std::size_t bytes, unsigned kind, const void* site);
  Violation argument(std::vector<Cell>& cells, const CheckedArgument& of, unsigned thread, const void* at,
                     std::size_t bytes, unsigned kind, const void* site);
  Violation nearest(const void* at, unsigned kind) const;

  std::vector<Cell> dynamic_, locals_;
  std::vector<std::vector<Cell>> elements_;  // per argument; empty: not watched
  std::uint32_t block_began_ = 1;            // epoch
  std::uint32_t epoch_ = 1;
  std::uint32_t wrote_[rille_abi::threads_max] = {};  // epoch of each thread's last write to an argument
  int left_ = -1;
  std::uint32_t warp_epoch_[rille_abi::threads_max / 32] = {};
};

// Stores in `check` the memory range of the loaded library that contains `inside`, and the range of that library's
// thread-local memory for this OS thread.
void find_module(const void* inside, MemoryCheck& check);

}  // namespace rille::device
