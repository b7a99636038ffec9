// What all device code shares: element types, packs of them, walks over windows, sums over a block. For nvcc, NVRTC
// and the shim (kernels/shim, which defines RILLE_CPU).
//
// A kernel is ENTRY(name, threads, parameters) { .. }: `threads` is the largest block it is launched with. Its name is
// what a Launcher asks for.
#pragma once

#include "kernels/cuda/params.h"

#ifdef RILLE_CPU
// Each kernel tells its name and how it is run (tests/support/shim_kernels.cpp).
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
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#define ENTRY(name, threads, ...) extern "C" __global__ void __launch_bounds__(threads) name(__VA_ARGS__)
#define DYNAMIC_SHARED(T, name)                          \
  extern __shared__ __align__(16) unsigned char raw_[];  \
  T* const name = reinterpret_cast<T*>(raw_)
#endif
#define DEVICE static __device__ __forceinline__
#define GIVEN const __grid_constant__            // a parameter that is read in place, never copied

namespace rille::kernels::cuda {

typedef __half Half;
typedef __nv_bfloat16 Brain;
typedef long long Long;
typedef unsigned char Byte;
typedef signed char Small;

// f16 and bf16 are computed in f32 and rounded once.
template <class T> struct WideOf { typedef T type; };
template <> struct WideOf<Half> { typedef float type; };
template <> struct WideOf<Brain> { typedef float type; };
template <class T> using Wide = typename WideOf<T>::type;
template <class T> DEVICE Wide<T> widen(T x) { return x; }
DEVICE float widen(Half x) { return __half2float(x); }
DEVICE float widen(Brain x) { return __bfloat162float(x); }
template <class T> struct Narrow { template <class X> DEVICE T of(X x) { return T(x); } };
template <> struct Narrow<Half> { template <class X> DEVICE Half of(X x) { return __float2half_rn(float(x)); } };
template <> struct Narrow<Brain> { template <class X> DEVICE Brain of(X x) { return __float2bfloat16_rn(float(x)); } };
template <class T, class X> DEVICE T narrow(X x) { return Narrow<T>::of(x); }

template <class T> struct IsFloat { static constexpr bool value = T(0.5f) != T(0); };
template <> struct IsFloat<Half> { static constexpr bool value = true; };
template <> struct IsFloat<Brain> { static constexpr bool value = true; };

// What one thread loads at once: 16 bytes, or 8 elements of one byte.
template <class T, int V> struct alignas(sizeof(T) * V) Pack { T at[V]; };
__host__ __device__ constexpr int pack_of(int size) { return size >= 8 ? 2 : size == 4 ? 4 : 8; }
template <class A, class B> __host__ __device__ constexpr int pack_both() {
  return pack_of(int(sizeof(A) > sizeof(B) ? sizeof(A) : sizeof(B)));
}

DEVICE unsigned divide(unsigned n, const Divider& d) { return (__umulhi(n, d.multiplier) + n) >> d.shift; }

// The first fault stays.
DEVICE void report(Fault* fault, unsigned code, Long value, Long limit, Long place, unsigned type = 0) {
  if (atomicCAS(&fault->code, 0u, code) != 0u) return;
  fault->type = type;
  fault->value = value;
  fault->limit = limit;
  fault->place = place;
}

// -- windows
template <int N> DEVICE void locate(const Windows<N>& w, unsigned unit, Long (&at)[N]) {
#pragma unroll
  for (int k = 0; k < N; ++k) at[k] = 0;
  for (int d = 0; d < w.rank - 1; ++d) {
    const unsigned next = divide(unit, w.size[d]), i = unit - next * w.size[d].divisor;
#pragma unroll
    for (int k = 0; k < N; ++k) at[k] += Long(i) * w.step[k][d];
    unit = next;
  }
#pragma unroll
  for (int k = 0; k < N; ++k) at[k] += Long(unit) * w.step[k][w.rank - 1];
}

template <int V> struct Count { static constexpr int value = V; };

// body(Count<V> or Count<1>, offsets of the operands) for each unit.
template <int V, int N, class Body> DEVICE void each_unit(const Windows<N>& w, const Body& body) {
  const unsigned first = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
  Long at[N];
  if (!w.packed) {
    for (unsigned u = first; u < w.units; u += stride) {
      locate(w, u, at);
      body(Count<1>(), at);
    }
    return;
  }
  for (unsigned u = first; u < w.units; u += stride) {
    locate(w, u, at);
    body(Count<V>(), at);
  }
  if (first >= w.tail) return;
#pragma unroll
  for (int k = 0; k < N; ++k) at[k] = w.spread >> k & 1 ? 0 : Long(w.units) * V + first;
  body(Count<1>(), at);
}

// V elements of operand k as they are.
template <class T, int V, int N> DEVICE Pack<T, V> fetch(const Windows<N>& w, int k, Long at) {
  const T* p = static_cast<const T*>(w.data[k]) + at;
  Pack<T, V> r;
  if (V == 1 || !(w.spread >> k & 1)) {
    r = *reinterpret_cast<const Pack<T, V>*>(p);
  } else {
    const T x = *p;
#pragma unroll
    for (int v = 0; v < V; ++v) r.at[v] = x;
  }
  return r;
}
// V elements of operand k, widened; the number where the operand is one.
template <class T, int V, int N> DEVICE void fetch_wide(const Windows<N>& w, int k, Long at, Wide<T> (&x)[V]) {
  if (w.constant == k) {
#pragma unroll
    for (int v = 0; v < V; ++v) x[v] = Wide<T>(w.number[0]);
    return;
  }
  const Pack<T, V> p = fetch<T, V>(w, k, at);
#pragma unroll
  for (int v = 0; v < V; ++v) x[v] = widen(p.at[v]);
}
template <class T, int V, int N> DEVICE void store(const Windows<N>& w, Long at, const Pack<T, V>& p) {
  *reinterpret_cast<Pack<T, V>*>(static_cast<T*>(w.data[N - 1]) + at) = p;
}

// -- operations of one and two operands: F::go(a, b, f, g), f and g the operation's numbers
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

// M(operation, type's name, type) for each type. RILLE_FEW_TYPES: the default build's check that the sources compile.
#ifdef RILLE_FEW_TYPES
#define FOR_FLOATS(M, op) M(op, bf16, Brain)
#define FOR_WHOLE(M, op) M(op, i64, Long)
#else
#define FOR_FLOATS(M, op) M(op, f32, float) M(op, f64, double) M(op, f16, Half) M(op, bf16, Brain)
#define FOR_WHOLE(M, op) M(op, i64, Long) M(op, i32, int) M(op, i8, Small) M(op, u8, Byte)
#endif
#define FOR_NUMBERS(M, op) FOR_FLOATS(M, op) FOR_WHOLE(M, op)
#define FOR_SIZES(M, op) M(op, 8, Long) M(op, 4, int) M(op, 2, unsigned short) M(op, 1, Byte)
