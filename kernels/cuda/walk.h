// Element types and loops over views, from which element-wise kernels are made: those of the build, and those generated
// for a plan's groups (device/group.hpp). For nvcc, NVRTC and the shim (kernels/shim, which defines
// RILLE_CPU). Includes only params.h, because generated kernels contain this text.
#pragma once

#include "kernels/cuda/params.h"

#ifndef RILLE_CPU
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#endif
#define DEVICE static __device__ __forceinline__
#define GIVEN const __grid_constant__            // a kernel parameter that is read in place, not copied

namespace rille::kernels::cuda {

typedef __half Half;
typedef __nv_bfloat16 Brain;
typedef long long Long;
typedef unsigned char Byte;
typedef signed char Small;

// The type for computing: f16 and bf16 are computed in f32 and rounded once.
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

struct Bool { Byte value; };
// Casts: float to integer truncates toward zero; to bool tests for "not zero".
template <class To> struct Convert { template <class X> DEVICE To of(X x) { return narrow<To>(x); } };
template <> struct Convert<Bool> { template <class X> DEVICE Bool of(X x) { return {Byte(x != X(0))}; } };

template <class T> struct IsFloat { static constexpr bool value = T(0.5f) != T(0); };
template <> struct IsFloat<Half> { static constexpr bool value = true; };
template <> struct IsFloat<Brain> { static constexpr bool value = true; };

// The elements that one thread loads at once: 16 bytes, or 8 elements of one byte.
template <class T, int V> struct alignas(sizeof(T) * V) Pack { T at[V]; };
__host__ __device__ constexpr int pack_of(int size) { return size >= 8 ? 2 : size == 4 ? 4 : 8; }
template <class A, class B> __host__ __device__ constexpr int pack_both() {
  return pack_of(int(sizeof(A) > sizeof(B) ? sizeof(A) : sizeof(B)));
}

DEVICE unsigned divide(unsigned n, const Divider& d) { return (__umulhi(n, d.multiplier) + n) >> d.shift; }

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

// Calls body(Count<V> or Count<1>, offsets of the operands) for each unit.
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

// Loads V elements of operand k in their own type.
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
// Loads V elements of operand k, widened; or the constant, if operand k is the constant.
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
template <class T, int V, int N> DEVICE void put(const Windows<N>& w, int k, Long at, const Pack<T, V>& p) {
  *reinterpret_cast<Pack<T, V>*>(static_cast<T*>(w.data[k]) + at) = p;
}
template <class T, int V, int N> DEVICE void store(const Windows<N>& w, Long at, const Pack<T, V>& p) {
  put(w, N - 1, at, p);
}

}  // namespace rille::kernels::cuda

// Defines an element-wise function once for kernels and groups: F_<op>::go(operands, f, g), where f and g are the
// operation's numbers.
#define FUNCTION_1(op, expression) \
  struct F_##op { template <class T> DEVICE T go(T x, T f, T g) { return T(expression); } };
#define FUNCTION_2(op, expression) \
  struct F_##op { template <class T> DEVICE T go(T a, T b, T f, T g) { return T(expression); } };
#define TEST_2(op, expression) \
  struct F_##op { template <class T> DEVICE Byte go(T a, T b, T f, T g) { return Byte(expression); } };
