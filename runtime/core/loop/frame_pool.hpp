// Memory of coroutine frames: free lists by size, one set to a thread, since a durable call makes and drops several
// frames of the same few sizes. A thread keeps at most a few hundred of each size until it ends. A frame may be dropped
// on another thread than made it. Under a sanitizer every frame comes from the heap, so that it sees each end.
#pragma once

#include <cstddef>

namespace rille::detail {

void* allocate_frame(std::size_t size);
void free_frame(void* frame, std::size_t size) noexcept;

// A promise type's base.
struct PooledFrame {
  static void* operator new(std::size_t size) { return allocate_frame(size); }
  static void operator delete(void* frame, std::size_t size) noexcept { free_frame(frame, size); }
};

}  // namespace rille::detail
