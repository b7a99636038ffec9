// The small blocks of one Lua state, from one piece of memory that is freed with the state. A block is taken and given
// back in a few instructions; malloc needs ten times as many, most of all to open and close a state. A block that was
// given back is used again for the same size. Once the piece is used up, the other blocks come from malloc. One thread
// at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace rille::host {

class SmallBlocks {
 public:
  // A new state has about 200 KB of small blocks; a script's garbage often fits into the rest.
  static constexpr std::size_t piece_bytes = 1 << 20, step = 16, sizes = 32;
  // Null: the block is too large, or the piece is used up. `size` is at least 1.
  void* take(std::size_t size) {
    const std::size_t i = index(size);
    if (i >= sizes) return nullptr;
    if (Free* block = free_[i]) {
      free_[i] = block->next;
      return block;
    }
    if (!piece_) piece_.reset(new (std::nothrow) char[piece_bytes]);
    if (!piece_ || (i + 1) * step > piece_bytes - used_) return nullptr;
    char* block = piece_.get() + used_;
    used_ += (i + 1) * step;
    return block;
  }
  bool holds(const void* pointer) const {
    return reinterpret_cast<std::uintptr_t>(pointer) - reinterpret_cast<std::uintptr_t>(piece_.get()) < used_;
  }
  void give(void* pointer, std::size_t size) {
    auto* block = static_cast<Free*>(pointer);
    block->next = free_[index(size)];
    free_[index(size)] = block;
  }
  static bool same_size(std::size_t a, std::size_t b) { return index(a) == index(b); }

 private:
  struct Free {
    Free* next;
  };
  static std::size_t index(std::size_t size) { return (size - 1) / step; }

  std::unique_ptr<char[]> piece_;
  std::size_t used_ = 0;
  Free* free_[sizes] = {};
};

}  // namespace rille::host
