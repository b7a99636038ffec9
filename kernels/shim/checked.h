// CUDA C++ for a plain C++ compiler, part 7: checked mode. The compiler's instrumentation for data races calls these
// functions at each memory access, and its check of array bounds calls them at each bad index. No sanitizer library is
// linked: Rille implements the functions (runtime/compute/device/kernel_check.cpp).
#pragma once
#include "groups.h"

#ifdef RILLE_CHECKED
extern "C" {
#define RILLE_HOOK RILLE_UNWATCHED __attribute__((noinline, used, visibility("hidden")))
RILLE_UNWATCHED static inline void rille_access(const void* at, unsigned bytes, unsigned kind, const void* site) {
  const unsigned long offset = (unsigned long)at - (unsigned long)&rille_own;
  if (offset < sizeof rille_own || !rille_worker) return;  // no worker: code before any launch, as a constructor
  rille_worker->access(rille_worker, rille_thread(), at, bytes, kind, site);
}
#define RILLE_ACCESS(n)                                                                                              \
  RILLE_HOOK void __tsan_read##n(void* p) { rille_access(p, n, rille_abi::access_read, RILLE_SITE); }                \
  RILLE_HOOK void __tsan_write##n(void* p) { rille_access(p, n, rille_abi::access_write, RILLE_SITE); }              \
  RILLE_HOOK void __tsan_unaligned_read##n(void* p) { rille_access(p, n, rille_abi::access_read, RILLE_SITE); }      \
  RILLE_HOOK void __tsan_unaligned_write##n(void* p) { rille_access(p, n, rille_abi::access_write, RILLE_SITE); }    \
  RILLE_HOOK void __tsan_volatile_read##n(void* p) { rille_access(p, n, rille_abi::access_read, RILLE_SITE); }       \
  RILLE_HOOK void __tsan_volatile_write##n(void* p) { rille_access(p, n, rille_abi::access_write, RILLE_SITE); }     \
  RILLE_HOOK void __tsan_read_write##n(void* p) { rille_access(p, n, rille_abi::access_write, RILLE_SITE); }
RILLE_ACCESS(1) RILLE_ACCESS(2) RILLE_ACCESS(4) RILLE_ACCESS(8) RILLE_ACCESS(16)
RILLE_HOOK void __tsan_read_range(void* p, long n) {
  rille_access(p, (unsigned)n, rille_abi::access_read, RILLE_SITE);
}
RILLE_HOOK void __tsan_write_range(void* p, long n) {
  rille_access(p, (unsigned)n, rille_abi::access_write, RILLE_SITE);
}
RILLE_HOOK void __tsan_init() {}
RILLE_HOOK void __tsan_func_entry(void*) {}
RILLE_HOOK void __tsan_func_exit(void*) {}
RILLE_HOOK void __tsan_vptr_update(void*, void*) {}
RILLE_HOOK void __tsan_vptr_read(void*) {}
RILLE_HOOK void __tsan_atomic_thread_fence(int) {}
RILLE_HOOK void __tsan_atomic_signal_fence(int) {}

// The structs that both compilers pass.
struct rille_type { unsigned short kind, info; char name[1]; };
struct rille_place { const char* file; unsigned line, column; };
struct rille_bad_index { rille_place place; rille_type* array; rille_type* index; };
RILLE_HOOK void __ubsan_handle_out_of_bounds(void* data, void* index) {
  const rille_bad_index* what = (const rille_bad_index*)data;
  rille_worker->bad_index(rille_worker, rille_thread(), what->array->name, (rille_abi::u64)index, what->place.file,
                          what->place.line);
}
RILLE_HOOK void __ubsan_handle_divrem_overflow(void* data, void*, void*) {
  const rille_place* at = (const rille_place*)data;
  rille_worker->failed(rille_worker, rille_thread(), "divides a whole number by zero", at->file, at->line);
}
RILLE_HOOK void __ubsan_handle_divrem_overflow_abort(void* data, void* a, void* b) {
  __ubsan_handle_divrem_overflow(data, a, b);
}
RILLE_HOOK void __ubsan_handle_out_of_bounds_abort(void* data, void* index) {
  __ubsan_handle_out_of_bounds(data, index);
}
}
#endif
