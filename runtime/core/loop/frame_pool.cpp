#include "runtime/core/loop/frame_pool.hpp"

#include <new>

namespace rille::detail {

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t classes = 0;
#else
constexpr std::size_t classes = 32;
#endif
constexpr std::size_t step_bytes = 64;  // a size class holds frames up to a multiple of this
constexpr int kept_max = 256;

struct Free {
  Free* next;
};

struct Pool {
  Free* lists[classes + 1] = {};
  int kept[classes + 1] = {};
  ~Pool() {
    for (Free* list : lists)
      while (list) {
        Free* next = list->next;
        ::operator delete(list);
        list = next;
      }
  }
};

// `pool` is a plain pointer without a destructor: a frame freed after the thread's Pool has ended finds null.
thread_local Pool* pool = nullptr;
thread_local bool ended = false;

struct Owner {
  Pool pool;
  ~Owner() {
    detail::pool = nullptr;
    ended = true;
  }
};

Pool* own_pool() {
  if (!pool && !ended) {
    thread_local Owner owner;
    pool = &owner.pool;
  }
  return pool;
}

std::size_t class_of(std::size_t size) { return (size + step_bytes - 1) / step_bytes; }

}  // namespace

void* allocate_frame(std::size_t size) {
  std::size_t c = class_of(size);
  if (c > classes) return ::operator new(size);
  if (Pool* p = own_pool(); p && p->lists[c]) {
    Free* frame = p->lists[c];
    p->lists[c] = frame->next;
    --p->kept[c];
    return frame;
  }
  return ::operator new(c* step_bytes);
}

void free_frame(void* frame, std::size_t size) noexcept {
  std::size_t c = class_of(size);
  Pool* p = c > classes ? nullptr : own_pool();
  if (!p || p->kept[c] == kept_max) return ::operator delete(frame);
  ++p->kept[c];
  p->lists[c] = new (frame) Free{p->lists[c]};
}

}  // namespace rille::detail
