#include "runtime/compute/device/kernel_ranges.hpp"

#include <algorithm>

#include "runtime/compute/device/kernel.hpp"

namespace rille::device {

ArgumentRanges::ArgumentRanges(const std::vector<rille_abi::Parameter>& parameters,
                               const std::vector<LaunchArgument>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto& a = arguments[i];
    if (!parameters[i].pointer || !a.pointer || !a.bytes) continue;
    add({static_cast<std::byte*>(a.pointer), a.bytes, !parameters[i].constant});
  }
}

void ArgumentRanges::add(ArgumentRange mine) {
  for (std::size_t i = 0; i < list_.size();) {
    ArgumentRange& r = list_[i];
    if (r.from + r.bytes <= mine.from || mine.from + mine.bytes <= r.from) {
      ++i;
      continue;
    }
    auto* end = std::max(r.from + r.bytes, mine.from + mine.bytes);
    mine.from = std::min(r.from, mine.from);
    mine.bytes = std::size_t(end - mine.from);
    mine.written = mine.written || r.written;
    list_.erase(list_.begin() + std::ptrdiff_t(i));
    i = 0;
  }
  list_.push_back(mine);
}

std::uintptr_t ArgumentRanges::copy_of(const void* at) const {
  const auto* p = static_cast<const std::byte*>(at);
  for (const auto& r : list_)
    if (p >= r.from && p < r.from + r.bytes) return r.copy + std::uintptr_t(p - r.from);
  return 0;
}

}  // namespace rille::device
