// CUDA C++ for a plain C++ compiler, part 2: warps, votes, shuffles, atomics.
#pragma once
#include "core.h"

RILLE_INNER rille_abi::u64 rille_warp(rille_abi::WarpKind kind, unsigned mask, rille_abi::u64 value, unsigned from,
                                      const void* site) {
  const rille_me me = rille_here();
  rille_worker->own = &rille_own;                      // rille_barrier() needs `own` after a block's first wait
  const rille_abi::u64 r = rille_worker->warp(rille_worker, rille_thread(), kind, mask, value, from, site);
  rille_back(me);
  return r;
}
#define RILLE_WARP(kind, mask, value, from) \
  rille_warp(rille_abi::kind, mask, (rille_abi::u64)(value), from, __builtin_return_address(0))

#ifdef RILLE_CHECKED
#define RILLE_WARPS RILLE_UNWATCHED __attribute__((noinline, unused)) static
#else
#define RILLE_WARPS __attribute__((noinline, unused)) static
#endif
RILLE_WARPS void __syncwarp(unsigned mask = 0xffffffffu) { RILLE_WARP(warp_sync, mask, 0, 0); }
RILLE_WARPS unsigned __ballot_sync(unsigned mask, int p) { return (unsigned)RILLE_WARP(ballot, mask, p != 0, 0); }
RILLE_WARPS int __any_sync(unsigned mask, int p) { return RILLE_WARP(ballot, mask, p != 0, 0) != 0; }
RILLE_WARPS int __all_sync(unsigned mask, int p) { return RILLE_WARP(ballot, mask, p == 0, 0) == 0; }
RILLE_WARPS int __uni_sync(unsigned mask, int p) {
  const unsigned b = (unsigned)RILLE_WARP(ballot, mask, p != 0, 0);
  return b == 0 || b == (unsigned)RILLE_WARP(ballot, mask, 1, 0);
}
// The lanes of the warp that run together at this point: all that have not finished and do not wait elsewhere.
RILLE_WARPS unsigned __activemask() { return (unsigned)RILLE_WARP(active, 0xffffffffu, 0, 0); }
RILLE_WARPS unsigned __reduce_add_sync(unsigned m, unsigned v) { return (unsigned)RILLE_WARP(add_u32, m, v, 0); }
RILLE_WARPS int __reduce_add_sync(unsigned m, int v) { return (int)RILLE_WARP(add_u32, m, (unsigned)v, 0); }
RILLE_WARPS unsigned __reduce_min_sync(unsigned m, unsigned v) { return (unsigned)RILLE_WARP(min_u32, m, v, 0); }
RILLE_WARPS unsigned __reduce_max_sync(unsigned m, unsigned v) { return (unsigned)RILLE_WARP(max_u32, m, v, 0); }
RILLE_WARPS int __reduce_min_sync(unsigned m, int v) { return (int)RILLE_WARP(min_i32, m, (unsigned)v, 0); }
RILLE_WARPS int __reduce_max_sync(unsigned m, int v) { return (int)RILLE_WARP(max_i32, m, (unsigned)v, 0); }
RILLE_WARPS unsigned __reduce_and_sync(unsigned m, unsigned v) { return (unsigned)RILLE_WARP(and_u32, m, v, 0); }
RILLE_WARPS unsigned __reduce_or_sync(unsigned m, unsigned v) { return (unsigned)RILLE_WARP(or_u32, m, v, 0); }
RILLE_WARPS unsigned __reduce_xor_sync(unsigned m, unsigned v) { return (unsigned)RILLE_WARP(xor_u32, m, v, 0); }

template <class T> RILLE_IN rille_abi::u64 rille_to_bits(T v) {
  static_assert(sizeof(T) <= 8, "a shuffle moves values of at most eight bytes");
  rille_abi::u64 bits = 0;
  __builtin_memcpy(&bits, &v, sizeof v);
  return bits;
}
template <class T> RILLE_IN T rille_from_bits(rille_abi::u64 bits) {
  T v;
  __builtin_memcpy(&v, &bits, sizeof v);
  return v;
}
// A warp is divided into pieces of `width` lanes, a power of two; a lane whose source is outside its piece keeps its
// value.
template <class T> RILLE_WARPS T __shfl_sync(unsigned mask, T v, int from, int width = 32) {
  const unsigned l = rille_lane(), w = (unsigned)width;
  return rille_from_bits<T>(RILLE_WARP(exchange, mask, rille_to_bits(v), (l & ~(w - 1)) + ((unsigned)from & (w - 1))));
}
template <class T> RILLE_WARPS T __shfl_up_sync(unsigned mask, T v, unsigned delta, int width = 32) {
  const unsigned l = rille_lane(), w = (unsigned)width;
  return rille_from_bits<T>(RILLE_WARP(exchange, mask, rille_to_bits(v), (l & (w - 1)) < delta ? l : l - delta));
}
template <class T> RILLE_WARPS T __shfl_down_sync(unsigned mask, T v, unsigned delta, int width = 32) {
  const unsigned l = rille_lane(), w = (unsigned)width;
  return rille_from_bits<T>(RILLE_WARP(exchange, mask, rille_to_bits(v), (l & (w - 1)) + delta >= w ? l : l + delta));
}
template <class T> RILLE_WARPS T __shfl_xor_sync(unsigned mask, T v, int bits, int width = 32) {
  const unsigned l = rille_lane(), w = (unsigned)width, from = l ^ (unsigned)bits;
  const unsigned source = (from & ~(w - 1)) > (l & ~(w - 1)) ? l : from;
  return rille_from_bits<T>(RILLE_WARP(exchange, mask, rille_to_bits(v), source));
}
template <class T> RILLE_WARPS unsigned __match_any_sync(unsigned mask, T v) {
  return (unsigned)RILLE_WARP(match, mask, rille_to_bits(v), 0);
}
template <class T> RILLE_WARPS unsigned __match_all_sync(unsigned mask, T v, int* equal) {
  const unsigned same = (unsigned)RILLE_WARP(match, mask, rille_to_bits(v), 0);
  const unsigned there = (unsigned)RILLE_WARP(ballot, mask, 1, 0);
  *equal = same == there;
  return *equal ? same : 0;
}

// -- atomics: global memory is shared with other OS threads; shared memory is not, but atomics on it cost little more
#ifdef RILLE_CHECKED
RILLE_UNWATCHED __attribute__((noinline, unused)) static void rille_touch(const void* at, unsigned bytes,
                                                                          const void* site) {
  rille_worker->access(rille_worker, rille_thread(), at, bytes, rille_abi::access_atomic, site);
}
#define RILLE_TOUCH(p) rille_touch((const void*)(p), sizeof *(p), __builtin_return_address(0))
#define RILLE_ATOMIC RILLE_UNWATCHED __attribute__((noinline, unused)) static
#else
#define RILLE_TOUCH(p) (void)0
#define RILLE_ATOMIC RILLE_IN
#endif

template <class T> struct rille_bits_of { typedef T type; };
template <> struct rille_bits_of<float> { typedef unsigned type; };
template <> struct rille_bits_of<double> { typedef unsigned long long type; };
// Atomically replaces the old value by f(old); returns the old value.
template <class T, class Fn> RILLE_UNWATCHED RILLE_IN T rille_replace(T* at, Fn f) {
  typedef typename rille_bits_of<T>::type B;
  B old = __atomic_load_n((B*)at, __ATOMIC_RELAXED), wanted;
  T value;
  do {
    __builtin_memcpy(&value, &old, sizeof value);
    const T next = f(value);
    __builtin_memcpy(&wanted, &next, sizeof next);
  } while (!__atomic_compare_exchange_n((B*)at, &old, wanted, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return value;
}
#define RILLE_ATOMIC_INT(T)                                                                                         \
  RILLE_ATOMIC T atomicAdd(T* p, T v) { RILLE_TOUCH(p); return __atomic_fetch_add(p, v, __ATOMIC_RELAXED); }        \
  RILLE_ATOMIC T atomicSub(T* p, T v) { RILLE_TOUCH(p); return __atomic_fetch_sub(p, v, __ATOMIC_RELAXED); }        \
  RILLE_ATOMIC T atomicAnd(T* p, T v) { RILLE_TOUCH(p); return __atomic_fetch_and(p, v, __ATOMIC_RELAXED); }        \
  RILLE_ATOMIC T atomicOr(T* p, T v) { RILLE_TOUCH(p); return __atomic_fetch_or(p, v, __ATOMIC_RELAXED); }          \
  RILLE_ATOMIC T atomicXor(T* p, T v) { RILLE_TOUCH(p); return __atomic_fetch_xor(p, v, __ATOMIC_RELAXED); }        \
  RILLE_ATOMIC T atomicExch(T* p, T v) { RILLE_TOUCH(p); return __atomic_exchange_n(p, v, __ATOMIC_RELAXED); }      \
  RILLE_ATOMIC T atomicMin(T* p, T v) {                                                                             \
    RILLE_TOUCH(p); return rille_replace(p, [v](T o) { return o < v ? o : v; }); }                                  \
  RILLE_ATOMIC T atomicMax(T* p, T v) {                                                                             \
    RILLE_TOUCH(p); return rille_replace(p, [v](T o) { return o > v ? o : v; }); }                                  \
  RILLE_ATOMIC T atomicCAS(T* p, T expected, T v) {                                                                 \
    RILLE_TOUCH(p);                                                                                                 \
    __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);                        \
    return expected;                                                                                                \
  }
RILLE_ATOMIC_INT(int)
RILLE_ATOMIC_INT(unsigned)
RILLE_ATOMIC_INT(long long)
RILLE_ATOMIC_INT(unsigned long long)
RILLE_ATOMIC_INT(unsigned long)
// A source for old devices defines atomicAdd for doubles itself; that function is then preferred to this template.
#define RILLE_ATOMIC_FLOAT(T, before)                                                                               \
  before RILLE_ATOMIC T atomicAdd(T* p, T v) {                                                                      \
    RILLE_TOUCH(p);                                                                                                 \
    return rille_replace(p, [v](T o) { return o + v; });                                                            \
  }                                                                                                                 \
  before RILLE_ATOMIC T atomicExch(T* p, T v) { RILLE_TOUCH(p); return rille_replace(p, [v](T) { return v; }); }
RILLE_ATOMIC_FLOAT(float, )
RILLE_ATOMIC_FLOAT(double, template <int = 0>)
RILLE_ATOMIC unsigned atomicInc(unsigned* p, unsigned v) {
  RILLE_TOUCH(p);
  return rille_replace(p, [v](unsigned o) { return o >= v ? 0u : o + 1; });
}
RILLE_ATOMIC unsigned atomicDec(unsigned* p, unsigned v) {
  RILLE_TOUCH(p);
  return rille_replace(p, [v](unsigned o) { return o == 0 || o > v ? v : o - 1; });
}
// 16-bit atomics, and vectors one number after the other, as in CUDA.
RILLE_ATOMIC unsigned short atomicCAS(unsigned short* p, unsigned short expected, unsigned short v) {
  RILLE_TOUCH(p);
  __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
RILLE_IN float2 atomicAdd(float2* p, float2 v) { return {atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y)}; }
RILLE_IN float4 atomicAdd(float4* p, float4 v) {
  return {atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y), atomicAdd(&p->z, v.z), atomicAdd(&p->w, v.w)};
}
#define atomicAdd_block atomicAdd
#define atomicAdd_system atomicAdd
#define atomicSub_block atomicSub
#define atomicSub_system atomicSub
#define atomicExch_block atomicExch
#define atomicExch_system atomicExch
#define atomicMin_block atomicMin
#define atomicMin_system atomicMin
#define atomicMax_block atomicMax
#define atomicMax_system atomicMax
#define atomicInc_block atomicInc
#define atomicInc_system atomicInc
#define atomicDec_block atomicDec
#define atomicDec_system atomicDec
#define atomicCAS_block atomicCAS
#define atomicCAS_system atomicCAS
#define atomicAnd_block atomicAnd
#define atomicAnd_system atomicAnd
#define atomicOr_block atomicOr
#define atomicOr_system atomicOr
#define atomicXor_block atomicXor
#define atomicXor_system atomicXor
