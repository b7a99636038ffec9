// The memory ranges that the pointer arguments of a launch refer to, for a launch on copies. Arguments that overlap
// share one range, so that their copies overlap in the same way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/compute/device/kernel_run.hpp"

namespace rille::device {

struct LaunchArgument;

// A checked launch copies each range to memory with this much unused address space before and after it.
constexpr std::size_t gap_bytes = 64 << 20;

struct ArgumentRange {
  std::byte* from = nullptr;
  std::size_t bytes = 0;
  bool written = false;
  std::uintptr_t copy = 0;  // start of the copy: an address, or an offset
};

class ArgumentRanges {
 public:
  ArgumentRanges(const std::vector<rille_abi::Parameter>& parameters, const std::vector<LaunchArgument>& arguments);
  std::vector<ArgumentRange>& list() { return list_; }
  const std::vector<ArgumentRange>& list() const { return list_; }
  // The position in the copy that corresponds to `at`, the start of an argument; `at` is in one of the ranges.
  std::uintptr_t copy_of(const void* at) const;

 private:
  void add(ArgumentRange mine);
  std::vector<ArgumentRange> list_;
};

}  // namespace rille::device
