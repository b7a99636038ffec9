// Memory for the values of one call: taken piece by piece, given back all at once. One thread at a time.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

namespace rille::capi {

class Arena {
 public:
  // Uninitialised; aligned for pointers and numbers. Throws std::bad_alloc.
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
  void clear() {
    if (blocks_.empty()) return;
    if (blocks_.size() > 1) blocks_.erase(blocks_.begin() + 1, blocks_.end());
    at_ = blocks_.front().get();
    end_ = at_ + first_bytes;
  }

 private:
  static constexpr std::size_t first_bytes = 4096, next_bytes = 1 << 20;
  void grow(std::size_t bytes) {
    const std::size_t size = blocks_.empty() ? first_bytes : std::max(bytes, next_bytes);
    blocks_.emplace_back(new char[size]);
    at_ = blocks_.back().get();
    end_ = at_ + size;
    if (bytes > size) grow(bytes);  // the first block has one size, so that clear() can keep it
  }

  std::vector<std::unique_ptr<char[]>> blocks_;
  char* at_ = nullptr;
  char* end_ = nullptr;
};

}  // namespace rille::capi
