// Device code that all kernels of the build use: kernel entries, faults, operations of one and two operands.
//
// A kernel is ENTRY(name, threads, parameters) { .. }, where `threads` is the largest block with which it is launched.
// A Launcher finds the kernel by this name.
#pragma once

#include "kernels/cuda/walk.h"

#ifdef RILLE_CPU
// Registers each kernel with its name and the function that runs it (tests/support/shim_kernels.cpp).
extern "C" void rille_note_kernel(const char* name, const rille_abi::Kernel* kernel);
#ifdef RILLE_CHECKED
#define RILLE_KERNEL_BODY __attribute__((noinline)) static
RILLE_UNWATCHED static void* rille_locals(rille_abi::Worker* w) { rille_worker = w; return &rille_worker; }
#else
#define RILLE_KERNEL_BODY static
static void* rille_locals(rille_abi::Worker* w) { return w; }
#endif
template <auto F> struct rille_noted {
  typedef rille_runner<F> runner;
  static constexpr rille_abi::Kernel kernel{rille_abi::version, runner::count, runner::parameter, &runner::run,
                                            nullptr, 0, &rille_locals};
  explicit rille_noted(const char* name) { rille_note_kernel(name, &kernel); }
};
#define ENTRY(name, threads, ...)                             \
  RILLE_KERNEL_BODY void name(__VA_ARGS__);                   \
  static const rille_noted<&name> name##_noted(#name);        \
  RILLE_KERNEL_BODY void name(__VA_ARGS__)
#define DYNAMIC_SHARED(T, name) T* const name = static_cast<T*>(rille_shared())
#else
#define ENTRY(name, threads, ...) extern "C" __global__ void __launch_bounds__(threads) name(__VA_ARGS__)
#define DYNAMIC_SHARED(T, name)                          \
  extern __shared__ __align__(16) unsigned char raw_[];  \
  T* const name = reinterpret_cast<T*>(raw_)
#endif

namespace rille::kernels::cuda {

// Records a fault; only the first one is kept.
DEVICE void report(Fault* fault, unsigned code, Long value, Long limit, Long place, unsigned type = 0) {
  if (atomicCAS(&fault->code, 0u, code) != 0u) return;
  fault->type = type;
  fault->value = value;
  fault->limit = limit;
  fault->place = place;
}

// -- operations of one and two operands: F::go(a, b, f, g), where f and g are the operation's numbers
template <class F, class T, class R> DEVICE void apply_one(const Windows<2>& w) {
  typedef Wide<T> C;
  const C f = C(w.number[0]), g = C(w.number[1]);
  each_unit<pack_of(sizeof(T))>(w, [&](auto count, const Long(&at)[2]) {
    constexpr int V = decltype(count)::value;
    C x[V];
    fetch_wide<T, V>(w, 0, at[0], x);
    Pack<R, V> out;
#pragma unroll
    for (int v = 0; v < V; ++v) out.at[v] = narrow<R>(F::go(x[v], f, g));
    store(w, at[1], out);
  });
}

template <class F, class T, class R> DEVICE void apply_two(const Windows<3>& w) {
  typedef Wide<T> C;
  const C f = C(w.number[0]), g = C(w.number[1]);
  each_unit<pack_of(sizeof(T))>(w, [&](auto count, const Long(&at)[3]) {
    constexpr int V = decltype(count)::value;
    C a[V], b[V];
    fetch_wide<T, V>(w, 0, at[0], a);
    fetch_wide<T, V>(w, 1, at[1], b);
    Pack<R, V> out;
#pragma unroll
    for (int v = 0; v < V; ++v) out.at[v] = narrow<R>(F::go(a[v], b[v], f, g));
    store(w, at[2], out);
  });
}

}  // namespace rille::kernels::cuda

// Expands M(operation, name of type, type) for each type. RILLE_FEW_TYPES: one type each, to check that sources
// compile.
#ifdef RILLE_FEW_TYPES
#define FOR_FLOATS(M, op) M(op, bf16, Brain)
#define FOR_WHOLE(M, op) M(op, i64, Long)
#else
#define FOR_FLOATS(M, op) M(op, f32, float) M(op, f64, double) M(op, f16, Half) M(op, bf16, Brain)
#define FOR_WHOLE(M, op) M(op, i64, Long) M(op, i32, int) M(op, i8, Small) M(op, u8, Byte)
#endif
#define FOR_NUMBERS(M, op) FOR_FLOATS(M, op) FOR_WHOLE(M, op)
#define FOR_SIZES(M, op) M(op, 8, Long) M(op, 4, int) M(op, 2, unsigned short) M(op, 1, Byte)
