// Guard: the memory around the arguments of one launch, in the process of a kernel. Each range of arguments ends within
// 15 bytes of a page's end (place_ranges), and the pages between the ranges cannot be touched, so an access beyond an
// argument faults; what is written into the rest of an argument's own pages is found after the launch.
// One thread.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/compute/device/apart/messages.hpp"
#include "runtime/compute/device/kernel_ranges.hpp"
#include "runtime/compute/device/kernel_run.hpp"

namespace rille::device::apart {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t alignment_kept = 16;  // of an argument, for vectors such as float4
constexpr std::size_t guard_bytes = 64 << 20;

// Sets the offset of each range's copy in the memory of a launch, with guard_bytes before the first range and behind
// each. Returns the bytes of all of it.
std::size_t place_ranges(ArgumentRanges& ranges);

class Guard {
 public:
  // `memory` is mapped; `asked` describes it.
  Guard(std::byte* memory, const Launch& asked);
  // After the launch: names the argument of a fault in the memory, and finds what was written beside an argument.
  void look(Violation& found) const;

 private:
  struct Part {  // pages that hold arguments, and the arguments' bytes in them
    std::size_t begin = 0, end = 0, first_page = 0, last_page = 0;
  };
  Violation beyond(std::size_t offset, unsigned access) const;

  std::byte* const memory_;
  const Launch& asked_;
  std::vector<Part> parts_;
};

}  // namespace rille::device::apart
