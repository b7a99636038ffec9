// CUDA C++ for a plain C++ compiler, part 1: qualifiers, vector types, threadIdx and similar variables, the loop that
// runs a kernel. Rille embeds this file as text and puts it in front of a user's source; Rille's own build ignores it.
//
// threadIdx is a thread-local variable. Its address leaves this file only in kernels that wait, so that the compiler
// can vectorize the loop over the threads of a block. After a wait threadIdx is restored, because other threads ran
// meanwhile. rille_at_x is the sum blockIdx.x * blockDim.x + threadIdx.x without the wrap at 2^32, which would stop
// GCC's vectorizer.
#pragma once
#include "abi.h"

#define RILLE_CPU 1
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __forceinline__ __attribute__((always_inline)) inline
#define __noinline__ __attribute__((noinline))
#define __inline__ inline
#define __restrict__ __restrict
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __grid_constant__
#define __cluster_dims__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __shared__ static __thread
#define RILLE_IN static inline __attribute__((always_inline, unused))
// Checked mode: the compiler adds a call to each memory access (checked.h), except in RILLE_UNWATCHED functions.
#ifdef RILLE_CHECKED
#define __global__ __attribute__((noinline)) inline
#ifdef __clang__   // clang instruments atomics despite no_sanitize
#define RILLE_UNWATCHED __attribute__((no_sanitize("thread", "bounds"), disable_sanitizer_instrumentation))
#else
#define RILLE_UNWATCHED __attribute__((no_sanitize("thread", "bounds")))
#endif
#define RILLE_INNER RILLE_UNWATCHED static inline __attribute__((noinline, unused))
#else
#define __global__ __attribute__((always_inline)) inline
#define RILLE_UNWATCHED
#define RILLE_INNER RILLE_IN
#endif

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __INT8_TYPE__ int8_t;
typedef __INT16_TYPE__ int16_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __INTPTR_TYPE__ intptr_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef long clock_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
namespace std {
using ::size_t; using ::ptrdiff_t; using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t; using ::uint8_t;
using ::uint16_t; using ::uint32_t; using ::uint64_t; using ::intptr_t; using ::uintptr_t;
}

#define RILLE_VECTOR(T, name, align2, align4)                                                       \
  struct name##1 { T x; };                                                                          \
  struct __attribute__((aligned(align2))) name##2 { T x, y; };                                      \
  struct name##3 { T x, y, z; };                                                                    \
  struct __attribute__((aligned(align4))) name##4 { T x, y, z, w; };                                \
  RILLE_IN name##1 make_##name##1(T x) { return {x}; }                                              \
  RILLE_IN name##2 make_##name##2(T x, T y) { return {x, y}; }                                      \
  RILLE_IN name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; }                              \
  RILLE_IN name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
RILLE_VECTOR(signed char, char, 2, 4)
RILLE_VECTOR(unsigned char, uchar, 2, 4)
RILLE_VECTOR(short, short, 4, 8)
RILLE_VECTOR(unsigned short, ushort, 4, 8)
RILLE_VECTOR(int, int, 8, 16)
RILLE_VECTOR(unsigned int, uint, 8, 16)
RILLE_VECTOR(long long, longlong, 16, 16)
RILLE_VECTOR(unsigned long long, ulonglong, 16, 16)
RILLE_VECTOR(float, float, 8, 16)
RILLE_VECTOR(double, double, 16, 16)

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

// One struct, so that checked mode can tell accesses to it from the user's, and a wait needs its address only once. The
// first 16 bytes belong to the running thread: a wait saves them, and afterwards writes them to `thread` and thread_x.
struct __attribute__((aligned(32))) rille_own_type {
  uint3 thread;
  unsigned waited;                                     // not 0: this thread has waited before
  int thread_x, thread_y, thread_z, unused;
  uint3 block, block_size, grid_size;
  int base_x, base_y, base_z;
  rille_abi::Worker* worker;
};
typedef unsigned rille_me __attribute__((vector_size(16), may_alias));
static __thread rille_own_type rille_own;
#define threadIdx rille_own.thread
#define blockIdx rille_own.block
#define blockDim rille_own.block_size
#define gridDim rille_own.grid_size
#define rille_base_x rille_own.base_x
#define rille_base_y rille_own.base_y
#define rille_base_z rille_own.base_z
#define rille_thread_x rille_own.thread_x
#define rille_thread_y rille_own.thread_y
#define rille_thread_z rille_own.thread_z
#define rille_worker rille_own.worker
#define rille_waited rille_own.waited
static const int warpSize __attribute__((unused)) = 32;
#define rille_at_x ((unsigned)(rille_base_x + rille_thread_x))
#define rille_at_y ((unsigned)(rille_base_y + rille_thread_y))
#define rille_at_z ((unsigned)(rille_base_z + rille_thread_z))

RILLE_INNER unsigned rille_thread() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
RILLE_INNER unsigned rille_lane() { return rille_thread() & 31u; }
RILLE_INNER void rille_set_thread(int x, int y, int z) {
  threadIdx = {(unsigned)x, (unsigned)y, (unsigned)z};
  rille_thread_x = x; rille_thread_y = y; rille_thread_z = z;
}
RILLE_INNER rille_me rille_here() { return *(const rille_me*)&rille_own.thread; }
// After a wait: restores threadIdx of the thread that runs again.
RILLE_INNER void rille_restore(rille_own_type* own, rille_me me) {
  *(rille_me*)&own->thread = me;
  *(rille_me*)&own->thread_x = me;
}
RILLE_INNER void rille_back(rille_me me) {
  me[3] = 1;                                           // sets `waited`
  rille_restore(&rille_own, me);
}
#define RILLE_SITE __builtin_return_address(0)

// Checked mode: not inlined, so that the return address is where the kernel waits. Barriers are told apart by line,
// because the compiler may copy one.
#ifndef RILLE_CHECKED
// The compiler does not use r15 (-ffixed-r15), which holds the Worker of this OS thread while a block runs: loading the
// Worker from memory just after a switch would be the slowest part of the switch. The compiler also keeps nothing below
// the stack pointer (-mno-red-zone), so that a waiting thread touches only one or two cache lines.
#ifdef RILLE_R15
RILLE_IN rille_abi::Worker* rille_current() {
  rille_abi::Worker* w;
  __asm__ volatile("movq %%r15, %0" : "=r"(w));
  return w;
}
struct rille_r15 {
  void* before;
  explicit rille_r15(void* w) { __asm__ volatile("movq %%r15, %0\n\tmovq %1, %%r15" : "=&r"(before) : "r"(w)); }
  ~rille_r15() { __asm__ volatile("movq %0, %%r15" : : "r"(before)); }
};
#define RILLE_R15_CLOBBER
#define RILLE_BELOW 0
#define RILLE_DOWN
#define RILLE_UP
#else
RILLE_IN rille_abi::Worker* rille_current() { return rille_worker; }
struct rille_r15 { explicit rille_r15(void*) {} };
#define RILLE_R15_CLOBBER "r15",
#define RILLE_BELOW 128                                // bytes that the compiler may use below the stack pointer
#define RILLE_DOWN "leaq -128(%%rsp), %%rsp\n\t"
#define RILLE_UP "leaq 128(%%rsp), %%rsp\n\t"
#endif
#ifdef __AVX512F__
#define RILLE_MORE_REGISTERS \
  , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", \
      "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define RILLE_MORE_REGISTERS
#endif
// Switches stacks like switch_stack() of runtime/compute/device/fiber_stack.hpp.
RILLE_IN void rille_switch(void** from, void* to) {
  __asm__ volatile(
      RILLE_DOWN "pushq %%rbp\n\tleaq 1f(%%rip), %%rax\n\tpushq %%rax\n\tmovq %%rsp, (%0)\n\t"
      "movq %1, %%rsp\n\tpopq %%rax\n\tjmpq *%%rax\n1:\n\tpopq %%rbp\n\t" RILLE_UP
      : "+D"(from), "+S"(to)
      :
      : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", RILLE_R15_CLOBBER "memory", "cc",
        "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12",
        "xmm13", "xmm14", "xmm15" RILLE_MORE_REGISTERS);
}
#endif

#ifdef RILLE_CHECKED
RILLE_UNWATCHED __attribute__((noinline, unused)) static unsigned rille_barrier(unsigned predicate,
                                                                              unsigned long place = 0) {
  const void* site = place ? (const void*)place : RILLE_SITE;
#else
// The first and the last wait of a block, and a wait when no other thread can run, are handled by the runtime.
__attribute__((noinline, unused)) static unsigned rille_barrier_call(rille_abi::Worker* w, unsigned predicate) {
  const rille_me me = rille_here();
  w->own = &rille_own;
  const unsigned n = w->barrier(w, rille_thread(), predicate, nullptr);
  rille_back(me);
  return n;
}
RILLE_IN unsigned rille_barrier(unsigned predicate) {
#endif
#ifndef RILLE_CHECKED
  rille_abi::Worker* w = rille_current();
  const unsigned at = w->at;
  if (__builtin_expect(at == w->limit, 0)) return rille_barrier_call(w, predicate);
  const rille_own_type* before = (const rille_own_type*)w->own;     // set by the block's first wait
  if (__builtin_expect(!before->waited, 0)) return rille_barrier_call(w, predicate);
  const rille_me me = *(const rille_me*)&before->thread;
  w->count += predicate;
  w->at = at + 1;
  // The stacks of hundreds of threads exceed the first-level cache, so fetch the one that runs soon. Only one line: to
  // fetch an unneeded line costs as much as to wait for a needed one.
  const char* soon = (const char*)w->ready[at + 4];
  __builtin_prefetch(soon);
  if (RILLE_BELOW) __builtin_prefetch(soon + RILLE_BELOW);
  rille_switch(&w->arrivals[at], w->ready[at]);
  w = rille_current();
  rille_restore((rille_own_type*)w->own, me);
  return w->result;
#else
  const rille_me me = rille_here();
  const unsigned n = rille_worker->barrier(rille_worker, rille_thread(), predicate, site);
  rille_back(me);
  return n;
#endif
}
#ifdef RILLE_CHECKED
// The line with a counter, because one line may hold several barriers.
#define RILLE_PLACE (__LINE__ + ((__COUNTER__ + 1ul) << 20))
#define __syncthreads() ((void)rille_barrier(0, RILLE_PLACE))
#define __syncthreads_count(p) ((int)rille_barrier((p) != 0, RILLE_PLACE))
#define __syncthreads_or(p) ((int)(rille_barrier((p) != 0, RILLE_PLACE) != 0))
#define __syncthreads_and(p) ((int)(rille_barrier((p) == 0, RILLE_PLACE) == 0))
#else
RILLE_IN void __syncthreads() { rille_barrier(0); }
RILLE_IN int __syncthreads_count(int p) { return (int)rille_barrier(p != 0); }
RILLE_IN int __syncthreads_or(int p) { return rille_barrier(p != 0) != 0; }
RILLE_IN int __syncthreads_and(int p) { return rille_barrier(p == 0) == 0; }
#endif
RILLE_IN void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
RILLE_IN void __threadfence_block() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
RILLE_IN void __threadfence_system() { __threadfence(); }

// Dynamic shared memory: `extern __shared__ float s[];` in a function becomes a pointer to it (kernel_source.cpp).
RILLE_INNER void* rille_shared() { return rille_worker->shared; }
// Outside functions the name becomes a thread-local pointer that is set before a block runs.
struct rille_shared_name {
  void (*set)(void*);
  rille_shared_name* next;
  RILLE_UNWATCHED static rille_shared_name*& first() { static rille_shared_name* list; return list; }
  RILLE_UNWATCHED explicit rille_shared_name(void (*s)(void*)) : set(s), next(first()) { first() = this; }
};

// -- running
template <class T> struct rille_element { static constexpr unsigned of = rille_abi::other, lanes = 1; };
#define RILLE_ELEMENT(T, code)                                                                      \
  template <> struct rille_element<T> { static constexpr unsigned of = rille_abi::code, lanes = 1; };
RILLE_ELEMENT(bool, boolean) RILLE_ELEMENT(char, i8) RILLE_ELEMENT(signed char, i8) RILLE_ELEMENT(unsigned char, u8)
RILLE_ELEMENT(short, i16) RILLE_ELEMENT(unsigned short, u16) RILLE_ELEMENT(int, i32) RILLE_ELEMENT(unsigned, u32)
RILLE_ELEMENT(long, i64) RILLE_ELEMENT(unsigned long, u64_) RILLE_ELEMENT(long long, i64)
RILLE_ELEMENT(unsigned long long, u64_) RILLE_ELEMENT(float, f32) RILLE_ELEMENT(double, f64)
RILLE_ELEMENT(void, nothing)
#define RILLE_ELEMENTS(name, code)                                                                  \
  template <> struct rille_element<name##2> { static constexpr unsigned of = rille_abi::code, lanes = 2; };  \
  template <> struct rille_element<name##3> { static constexpr unsigned of = rille_abi::code, lanes = 3; };  \
  template <> struct rille_element<name##4> { static constexpr unsigned of = rille_abi::code, lanes = 4; };
RILLE_ELEMENTS(char, i8) RILLE_ELEMENTS(uchar, u8) RILLE_ELEMENTS(short, i16) RILLE_ELEMENTS(ushort, u16)
RILLE_ELEMENTS(int, i32) RILLE_ELEMENTS(uint, u32) RILLE_ELEMENTS(longlong, i64) RILLE_ELEMENTS(ulonglong, u64_)
RILLE_ELEMENTS(float, f32) RILLE_ELEMENTS(double, f64)

template <class T> struct rille_plain { typedef T type; };
template <class T> struct rille_plain<const T> { typedef T type; };
template <class T> struct rille_plain<volatile T> { typedef T type; };
template <class T> struct rille_plain<const volatile T> { typedef T type; };
template <class T> struct rille_plain<T[]> { typedef typename rille_plain<T>::type type; };
template <class T, size_t N> struct rille_plain<T[N]> { typedef typename rille_plain<T>::type type; };
template <class T> struct rille_is_const { static constexpr bool value = false; };
template <class T> struct rille_is_const<const T> { static constexpr bool value = true; };
template <class T> struct rille_is_const<const volatile T> { static constexpr bool value = true; };
template <class T> struct rille_size { static constexpr unsigned value = sizeof(T); };
template <> struct rille_size<void> { static constexpr unsigned value = 0; };
template <class T> struct rille_parameter {
  typedef typename rille_plain<T>::type P;
  static constexpr rille_abi::Parameter value{0, rille_element<P>::of, rille_element<P>::lanes, 0,
                                              rille_size<P>::value};
};
template <class T> struct rille_parameter<T*> {
  typedef typename rille_plain<T>::type P;
  static constexpr rille_abi::Parameter value{1, rille_element<P>::of, rille_element<P>::lanes,
                                              rille_is_const<T>::value, rille_size<P>::value};
};

template <size_t... I> struct rille_numbers {};
template <size_t N, size_t... I> struct rille_count : rille_count<N - 1, N - 1, I...> {};
template <size_t... I> struct rille_count<0, I...> { typedef rille_numbers<I...> type; };
template <size_t I, class T> struct rille_held { T value; };
template <class N, class... A> struct rille_held_all;
template <size_t... I, class... A> struct rille_held_all<rille_numbers<I...>, A...> : rille_held<I, A>... {};
template <size_t I, class T> RILLE_INNER const T& rille_get(const rille_held<I, T>& h) { return h.value; }

// flat: the kernel uses only rille_at_x and similar sums, and never waits (kernel_source.hpp).
template <auto F, bool flat = false> struct rille_runner;
template <class... A, void (*F)(A...), bool flat> struct rille_runner<F, flat> {
  static constexpr unsigned count = sizeof...(A);
  static constexpr rille_abi::Parameter parameter[sizeof...(A) + 1] = {rille_parameter<A>::value..., {}};
  template <size_t... I>
  RILLE_UNWATCHED static unsigned go(rille_numbers<I...>, rille_abi::Worker* w, void** p, unsigned first, unsigned last,
                                     unsigned thread) {
    const rille_held_all<rille_numbers<I...>, A...> a{{*(const typename rille_plain<A>::type*)p[I]}...};
    const int bx = (int)w->block[0], by = (int)w->block[1], bz = (int)w->block[2];
    const unsigned gx = w->grid[0], gy = w->grid[1];
    rille_worker = w;
    rille_waited = false;
#ifndef RILLE_CHECKED
    rille_r15 held(w);
#endif
    blockDim = {w->block[0], w->block[1], w->block[2]};
    gridDim = {w->grid[0], w->grid[1], w->grid[2]};
    for (rille_shared_name* s = rille_shared_name::first(); s; s = s->next) s->set(w->shared);
    if constexpr (flat) {
      if (by * bz == 1 && w->grid[1] * w->grid[2] == 1 && (unsigned long)last * (unsigned)bx < 0x7fffffffu) {
        rille_base_x = rille_base_y = rille_base_z = rille_thread_y = rille_thread_z = 0;
        for (int at = (int)first * bx, end = (int)last * bx; at < end; ++at) {
          rille_thread_x = at;
          F(rille_get<I>(a)...);
        }
        w->block_at = last - 1;
        return rille_abi::all_done;
      }
    }
    for (unsigned b = first; b < last; ++b) {
      w->block_at = b;
      blockIdx = {b % gx, b / gx % gy, b / gx / gy};
      rille_base_x = (int)blockIdx.x * bx;
      rille_base_y = (int)blockIdx.y * by;
      rille_base_z = (int)blockIdx.z * bz;
      int x = (int)thread % bx, y = (int)thread / bx % by, z = (int)thread / bx / by;
      thread = 0;                                       // not 0 on entry: resumes a block of which some threads waited
      for (; z < bz; ++z, y = 0) {
        for (; y < by; ++y, x = 0) {
          for (int at = x; at < bx; ++at) {
            rille_set_thread(at, y, z);
            F(rille_get<I>(a)...);
            if (rille_waited) return rille_thread();
          }
        }
      }
    }
    return rille_abi::all_done;
  }
  RILLE_UNWATCHED static unsigned run(rille_abi::Worker* w, void** p, unsigned first, unsigned last, unsigned thread) {
    return go(typename rille_count<sizeof...(A)>::type(), w, p, first, last, thread);
  }
};
