// The memory that the pointer arguments of a launch name, for a launch on copies of it. Arguments that overlap share
// one range, so that their copies overlap as well.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/compute/device/kernel_run.hpp"

namespace rille::device {

struct LaunchArgument;

// A checked launch copies each range to where this much address space before and behind it is unused.
constexpr std::size_t gap_bytes = 64 << 20;

struct ArgumentRange {
  std::byte* from = nullptr;
  std::size_t bytes = 0;
  bool written = false;
  std::uintptr_t copy = 0;  // where the copy begins: an address, or an offset
};

class ArgumentRanges {
 public:
  ArgumentRanges(const std::vector<rille_abi::Parameter>& parameters, const std::vector<LaunchArgument>& arguments);
  std::vector<ArgumentRange>& list() { return list_; }
  // Where the copy of `at`, the begin of an argument, is; `at` lies in one of the ranges.
  std::uintptr_t copy_of(const void* at) const;

 private:
  void add(ArgumentRange mine);
  std::vector<ArgumentRange> list_;
};

}  // namespace rille::device
