// Memory of coroutine frames: free lists per size and thread, since a durable call allocates and frees several frames
// of the same few sizes. A thread keeps at most a few hundred frames per size until it ends. A frame may be freed on
// another thread. Under a sanitizer every frame comes from the heap, so that the sanitizer sees each free.
#pragma once

#include <cstddef>

namespace rille::detail {

void* allocate_frame(std::size_t size);
void free_frame(void* frame, std::size_t size) noexcept;

// Base class of promise types.
struct PooledFrame {
  static void* operator new(std::size_t size) { return allocate_frame(size); }
  static void operator delete(void* frame, std::size_t size) noexcept { free_frame(frame, size); }
};

}  // namespace rille::detail
