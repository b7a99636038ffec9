// Memory for the values of one call: allocated in pieces, freed all at once. All blocks but the first count against the
// run's memory limit as results, if there is a run. One thread at a time.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "runtime/core/base/use.hpp"

namespace rille::capi {

class Arena {
 public:
  Arena() = default;
  explicit Arena(std::shared_ptr<MemoryUse> counted_in) : counted_in_(std::move(counted_in)) {}

  // Uninitialised; aligned for pointers and numbers. Throws std::bad_alloc, or MemoryRefused at the run's memory limit.
  void* take(std::size_t bytes) {
    bytes = (bytes + 7) / 8 * 8;
    if (bytes > static_cast<std::size_t>(end_ - at_)) grow(bytes);
    char* taken = at_;
    at_ += bytes;
    return taken;
  }
  template <class T>
  T* array(std::size_t count) {
    return static_cast<T*>(take(count * sizeof(T)));
  }
  const char* text(const char* data, std::size_t size) {  // a copy that ends in a zero
    char* copy = static_cast<char*>(take(size + 1));
    if (size) std::memcpy(copy, data, size);
    copy[size] = 0;
    return copy;
  }
  // Counts memory that the call uses outside the arena, until clear(). Throws MemoryRefused.
  void count(std::size_t bytes) {
    auto one = MemoryHeld::take(counted_in_, MemoryUse::Part::results, static_cast<std::int64_t>(bytes));
    if (!one) throw MemoryRefused(std::move(one).error());
    held_.push_back(std::move(*one));
  }
  void clear() {
    held_.clear();
    if (blocks_.empty()) return;
    if (blocks_.size() > 1) blocks_.erase(blocks_.begin() + 1, blocks_.end());
    at_ = blocks_.front().get();
    end_ = at_ + first_bytes;
  }

 private:
  static constexpr std::size_t first_bytes = 4096, next_bytes = 1 << 16;
  void grow(std::size_t bytes) {
    const std::size_t size = blocks_.empty() ? first_bytes : std::max(bytes, next_bytes);
    if (!blocks_.empty()) count(size);
    blocks_.emplace_back(new char[size]);
    at_ = blocks_.back().get();
    end_ = at_ + size;
    if (bytes > size) grow(bytes);  // the first block always has first_bytes, because clear() keeps it
  }

  std::shared_ptr<MemoryUse> counted_in_;
  std::vector<MemoryHeld> held_;
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* at_ = nullptr;
  char* end_ = nullptr;
};

}  // namespace rille::capi
