// Device code for rows. A row is processed by one warp (blockDim.x = 32, several rows along y) or by one block
// (blockDim.x up to 1024, a power of two). Sums are trees of fixed shape, so the bits are the same every time.
#pragma once

#include "kernels/cuda/device.h"

namespace rille::kernels::cuda {

#define EVERY_LANE 0xffffffffu

struct Plus { template <class T> DEVICE T of(T a, T b) { return a + b; } };
struct Times { template <class T> DEVICE T of(T a, T b) { return a * b; } };
struct Most { template <class T> DEVICE T of(T a, T b) { return a < b ? b : a; } };

template <class T> DEVICE T from_lane(T x, int distance) { return __shfl_xor_sync(EVERY_LANE, x, distance); }

// Combines the values of a row's threads by F; every thread gets the result.
template <class F, class T> DEVICE T over_row(T x) {
  __shared__ T shared[32];
#pragma unroll
  for (int d = 16; d; d /= 2) x = F::of(x, from_lane(x, d));
  if (blockDim.x == 32) return x;
  const unsigned warps = blockDim.x / 32;
  __syncthreads();                                // all threads have read the result of an earlier row
  if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = x;
  __syncthreads();
  x = shared[threadIdx.x & (warps - 1)];
  for (unsigned d = warps / 2; d; d /= 2) x = F::of(x, from_lane(x, int(d)));
  return x;
}

// Calls body(row) for each row that this warp or block processes.
template <class Body> DEVICE void each_row(Long rows, const Body& body) {
  const Long stride = Long(gridDim.x) * blockDim.y;
  for (Long row = Long(blockIdx.x) * blockDim.y + threadIdx.y; row < rows; row += stride) body(row);
}

// Calls body(Count<V> or Count<1>, first column) for this thread's columns of a row of n.
template <int V, class Body> DEVICE void each_column(Long n, int packed, const Body& body) {
  if (packed) for (Long j = Long(threadIdx.x) * V; j < n; j += Long(blockDim.x) * V) body(Count<V>(), j);
  else for (Long j = threadIdx.x; j < n; j += blockDim.x) body(Count<1>(), j);
}

template <class T, int V> DEVICE void load_wide(const T* p, Wide<T> (&x)[V]) {
  const Pack<T, V> all = *reinterpret_cast<const Pack<T, V>*>(p);
#pragma unroll
  for (int v = 0; v < V; ++v) x[v] = widen(all.at[v]);
}
template <class T, int V> DEVICE void store_wide(T* p, const Wide<T> (&x)[V]) {
  Pack<T, V> all;
#pragma unroll
  for (int v = 0; v < V; ++v) all.at[v] = narrow<T>(x[v]);
  *reinterpret_cast<Pack<T, V>*>(p) = all;
}

// Element j of a weight, which has the rows' type or, if `wide`, the type in which rows are computed.
template <class T> DEVICE Wide<T> weight_at(const void* p, int wide, Long j) {
  return wide ? static_cast<const Wide<T>*>(p)[j] : widen(static_cast<const T*>(p)[j]);
}
template <class T> DEVICE void put_weight(void* p, int wide, Long j, Wide<T> x) {
  if (wide) static_cast<Wide<T>*>(p)[j] = x;
  else static_cast<T*>(p)[j] = narrow<T>(x);
}

// e^x for x <= 0, with an error of a few units in the last place of 1.
DEVICE float fast_exp(float x) { return __expf(x); }
DEVICE double fast_exp(double x) { return exp(x); }

// An integer of any type, such as an id or a label. `type` is a DType.
enum IdType { id_u8 = 1, id_i8 = 2, id_i32 = 3, id_i64 = 4 };
DEVICE Long id_at(const void* p, unsigned type, Long i) {
  return type == id_i64   ? static_cast<const Long*>(p)[i]
         : type == id_i32 ? Long(static_cast<const int*>(p)[i])
         : type == id_i8  ? Long(static_cast<const Small*>(p)[i])
                          : Long(static_cast<const Byte*>(p)[i]);
}

}  // namespace rille::kernels::cuda
