#include "runtime/compute/device/kernel_check.hpp"

#include <algorithm>

namespace rille::device {

void MemoryCheck::begin_launch() {
  dynamic_.assign(dynamic_shared.bytes, {});
  locals_.assign(thread_locals.bytes, {});
  elements_.assign(arguments.size(), {});
  std::size_t left = watches_arguments ? watched_elements_max : 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::size_t count = arguments[i].bytes / arguments[i].element_bytes;
    if (arguments[i].read_only || count > left) continue;
    elements_[i].assign(count, {});
    left -= count;
  }
}

void MemoryCheck::begin_block() {
  barrier();
  block_began_ = epoch_;
}

// Whether two threads' accesses race: no barrier lies between them, nor, for threads of one warp, a warp operation.
bool MemoryCheck::clash(const Access& before, unsigned thread, unsigned kind) const {
  if (!before.site || before.epoch != epoch_ || before.thread == thread) return false;
  if (before.kind == rille_abi::access_atomic && kind == rille_abi::access_atomic) return false;
  return before.thread / 32 != thread / 32 || before.warp_epoch == warp_epoch_[thread / 32];
}

Violation MemoryCheck::shared(std::vector<Cell>& cells, const MemoryRange& range, unsigned thread, const void* at,
                              std::size_t bytes, unsigned kind, const void* site) {
  const std::size_t first = std::size_t(static_cast<const std::byte*>(at) - range.begin);
  const Access now{site, epoch_, warp_epoch_[thread / 32], std::uint16_t(thread), std::uint8_t(kind)};
  for (std::size_t i = first; i < first + bytes; ++i) {
    Cell& cell = cells[i];
    const Access* other = clash(cell.writer, thread, kind) ? &cell.writer : nullptr;
    if (!other && kind != rille_abi::access_read && clash(cell.reader, thread, kind)) other = &cell.reader;
    if (other) {
      Violation v;
      v.kind = Violation::Kind::race;
      v.other_thread = other->thread;
      v.other_access = other->kind;
      v.other_site = other->site;
      v.offset_bytes = std::int64_t(first);
      return v;
    }
    if (kind == rille_abi::access_read) {
      // Only one reader is stored. A reader of another warp than the stored one replaces it: that detects more races.
      if (cell.reader.epoch != epoch_ || cell.reader.thread / 32 == thread / 32) cell.reader = now;
    } else {
      cell.writer = now;
    }
  }
  return {};
}

Violation MemoryCheck::argument(std::vector<Cell>& cells, const CheckedArgument& of, unsigned thread, const void* at,
                                std::size_t bytes, unsigned kind, const void* site) {
  if (cells.empty() || kind == rille_abi::access_atomic) return {};
  const std::size_t offset = std::size_t(static_cast<const std::byte*>(at) - of.begin);
  const Access now{site, epoch_, warp_epoch_[thread / 32], std::uint16_t(thread), std::uint8_t(kind)};
  const std::size_t last = std::min(cells.size(), (offset + bytes + of.element_bytes - 1) / of.element_bytes);
  for (std::size_t i = offset / of.element_bytes; i < last; ++i) {
    Cell& cell = cells[i];
    const bool reads = kind == rille_abi::access_read;
    const bool read_by_me = cell.reader.site && cell.reader.epoch == epoch_ && cell.reader.thread == thread;
    const bool of_another_block = cell.writer.site && cell.writer.epoch < block_began_;
    const Access* other = nullptr;
    if (reads && clash(cell.writer, thread, kind)) other = &cell.writer;
    if (!reads && clash(cell.reader, thread, kind)) other = &cell.reader;
    if (!reads && read_by_me && of_another_block) other = &cell.writer;
    if (other) {
      Violation v;
      v.kind = Violation::Kind::global_race;
      v.parameter = of.parameter;
      v.other_thread = other->thread;
      v.other_access = other->kind;
      v.other_site = other->site;
      v.offset_bytes = std::int64_t(i * of.element_bytes);
      v.number = other->epoch < block_began_;
      return v;
    }
    if (!reads) cell.writer = now;
    else if (cell.reader.epoch != epoch_ || cell.reader.thread / 32 == thread / 32) cell.reader = now;
  }
  return {};
}

// Reports an access outside all arguments, naming the nearest argument: in checked mode they are far apart in memory.
Violation MemoryCheck::nearest(const void* at, unsigned kind) const {
  Violation v;
  v.kind = Violation::Kind::wild;
  std::uint64_t least = 64 << 20;
  for (const auto& a : arguments) {
    const std::int64_t offset = static_cast<const std::byte*>(at) - a.begin;
    const std::uint64_t distance = offset < 0 ? std::uint64_t(-offset) : std::uint64_t(offset) - a.bytes;
    if (distance >= least) continue;
    least = distance;
    v.kind = Violation::Kind::outside;
    v.parameter = a.parameter;
    v.offset_bytes = offset;
  }
  (void)kind;
  return v;
}

Violation MemoryCheck::look(unsigned thread, const void* at, std::size_t bytes, unsigned kind, const void* site) {
  const CheckedArgument* constant = nullptr;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto& a = arguments[i];
    if (!MemoryRange{a.begin, a.bytes}.has(at, bytes)) continue;
    if (kind != rille_abi::access_read && watches_arguments) wrote_[thread] = epoch_;
    if (kind == rille_abi::access_read || !a.read_only) return argument(elements_[i], a, thread, at, bytes, kind, site);
    constant = &a;  // a later argument may point to the same memory and allow writes
  }
  if (constant) {
    Violation v;
    v.kind = Violation::Kind::writes_constant;
    v.parameter = constant->parameter;
    v.offset_bytes = static_cast<const std::byte*>(at) - constant->begin;
    return v;
  }
  if (dynamic_shared.has(at, bytes)) return shared(dynamic_, dynamic_shared, thread, at, bytes, kind, site);
  if (thread_locals.has(at, bytes)) return shared(locals_, thread_locals, thread, at, bytes, kind, site);
  if (module.has(at, bytes)) return {};
  const std::int64_t beyond = static_cast<const std::byte*>(at) - dynamic_shared.begin;
  if (dynamic_shared.begin && beyond > -4096 && beyond < std::int64_t(dynamic_shared.bytes) + 4096) {
    Violation v;
    v.kind = Violation::Kind::shared_outside;
    v.offset_bytes = beyond;
    return v;
  }
  return nearest(at, kind);
}

}  // namespace rille::device
