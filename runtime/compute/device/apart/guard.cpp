#include "runtime/compute/device/apart/guard.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>

namespace rille::device::apart {

namespace {

constexpr std::byte pattern{0xa5};

constexpr std::size_t page_of(std::size_t offset) { return offset / page_bytes * page_bytes; }
constexpr std::size_t page_after(std::size_t offset) { return page_of(offset + page_bytes - 1); }

}  // namespace

std::size_t place_ranges(ArgumentRanges& ranges) {
  std::size_t total = 0;
  for (auto& r : ranges.list()) {
    const std::size_t rest = std::size_t(-(std::uintptr_t(r.from) + r.bytes)) % alignment_kept;
    const std::size_t end = page_after(total + guard_bytes + r.bytes + rest);
    r.copy = end - rest - r.bytes;
    total = end;
  }
  return total + guard_bytes;
}

Guard::Guard(std::byte* memory, const Launch& asked) : memory_(memory), asked_(asked) {
  for (unsigned i = 0; i < asked.arguments; ++i) {
    const auto& a = asked.argument[i];
    if (a.bytes) parts_.push_back({a.offset, a.offset + a.bytes, page_of(a.offset), page_after(a.offset + a.bytes)});
  }
  std::sort(parts_.begin(), parts_.end(), [](const Part& a, const Part& b) { return a.begin < b.begin; });
  std::size_t kept = 0;
  for (const Part& p : parts_) {  // arguments in the same pages are views of one range
    if (kept && p.first_page <= parts_[kept - 1].last_page) {
      Part& before = parts_[kept - 1];
      before.end = std::max(before.end, p.end);
      before.last_page = std::max(before.last_page, p.last_page);
    } else {
      parts_[kept++] = p;
    }
  }
  parts_.resize(kept);
  std::size_t free_from = 0;
  for (const Part& p : parts_) {
    ::mprotect(memory_ + free_from, p.first_page - free_from, PROT_NONE);
    std::memset(memory_ + p.first_page, int(pattern), p.begin - p.first_page);
    std::memset(memory_ + p.end, int(pattern), p.last_page - p.end);
    free_from = p.last_page;
  }
  const std::size_t said_from = page_of(asked.memory_bytes - said_bytes_max);
  if (said_from > free_from) ::mprotect(memory_ + free_from, said_from - free_from, PROT_NONE);
}

// The nearest argument counts.
Violation Guard::beyond(std::size_t offset, unsigned access) const {
  Violation v;
  std::int64_t least = std::int64_t(guard_bytes);
  for (unsigned i = 0; i < asked_.arguments; ++i) {
    const auto& a = asked_.argument[i];
    if (!a.bytes) continue;
    const std::int64_t from = std::int64_t(offset) - std::int64_t(a.offset);
    const std::int64_t distance = from < 0 ? -from : from - std::int64_t(a.bytes);
    if (distance >= least) continue;
    least = distance;
    v.kind = Violation::Kind::beyond;
    v.parameter = i;
    v.offset_bytes = from;
    v.access = access;
  }
  return v;
}

void Guard::look(Violation& found) const {
  if (found.kind == Violation::Kind::fault && found.number == SIGSEGV) {
    const std::size_t offset = std::size_t(found.offset_bytes) - std::uintptr_t(memory_);
    if (offset >= asked_.memory_bytes) return;
    Violation named = beyond(offset, rille_abi::access_read);
    if (named.kind == Violation::Kind::none) return;
    named.site = found.site;
    found = named;
    return;
  }
  if (found.kind != Violation::Kind::none) return;
  for (const Part& p : parts_) {
    const auto changed = [](std::byte b) { return b != pattern; };
    const auto* before = std::find_if(memory_ + p.first_page, memory_ + p.begin, changed);
    const auto* behind = std::find_if(memory_ + p.end, memory_ + p.last_page, changed);
    if (behind != memory_ + p.last_page) found = beyond(std::size_t(behind - memory_), rille_abi::access_write);
    else if (before != memory_ + p.begin) found = beyond(std::size_t(before - memory_), rille_abi::access_write);
    if (found.kind != Violation::Kind::none) return;
  }
}

}  // namespace rille::device::apart
