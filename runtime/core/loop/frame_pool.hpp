// Memory of coroutine frames. Each thread keeps free lists, one per frame size, because a durable call allocates and
// frees several frames of a few sizes. A thread keeps at most 256 free frames per size until it ends. A frame may be
// freed on another thread. Under a sanitizer every frame comes from the heap, so that the sanitizer sees each free.
#pragma once

#include <cstddef>

namespace rille::detail {

void* allocate_frame(std::size_t size);
void free_frame(void* frame, std::size_t size) noexcept;

// Base class of coroutine promise types; it allocates their coroutine frames from this pool.
struct PooledFrame {
  static void* operator new(std::size_t size) { return allocate_frame(size); }
  static void operator delete(void* frame, std::size_t size) noexcept { free_frame(frame, size); }
};

}  // namespace rille::detail
