// Loops over strided views. Adjacent dimensions that are contiguous in memory are merged, and the remaining rows are
// distributed over the threads. A kernel sees only rows: n elements with one stride per operand.
#pragma once

#include <omp.h>
#include <stdint.h>

#include "kernels/call.hpp"

#ifdef RILLE_ISA
#define RILLE_SPACE RILLE_ISA
#else
#define RILLE_SPACE generic  // files in kernels/generic are compiled once
#endif

namespace rille::kernels::RILLE_SPACE {

static constexpr int64_t parallel_grain = 16384;  // below this many elements one thread is faster than two
static constexpr int64_t row_chunk = 4096;        // longer rows are cut into pieces of this many elements
static constexpr int64_t look_rows = 64;          // a thread calls Call::stopped() every 64 rows
static constexpr int64_t look_elements = 262144;  // or after this many elements

// Up to N views of the same shape that a loop visits together.
template <int N>
struct Nest {
  int64_t outer = 1, inner = 1;
  int rank = 0;  // number of outer dimensions
  int64_t shape[max_rank] = {}, stride[N][max_rank] = {}, inner_stride[N] = {};
};

template <int N>
static inline Nest<N> make_nest(const View* const (&v)[N], int n = N) {
  Nest<N> nest;
  int64_t shape[max_rank + 1], stride[N][max_rank + 1];
  int r = 0;
  for (int d = 0; d < v[0]->shape.n; ++d) {
    const int64_t size = v[0]->shape[d];
    if (size == 1) continue;
    bool joins = r > 0;
    for (int k = 0; joins && k < n; ++k) joins = stride[k][r - 1] == v[k]->strides[d] * size;
    if (joins) {
      shape[r - 1] *= size;
      for (int k = 0; k < n; ++k) stride[k][r - 1] = v[k]->strides[d];
    } else {
      shape[r] = size;
      for (int k = 0; k < n; ++k) stride[k][r] = v[k]->strides[d];
      ++r;
    }
  }
  if (r > 0) {
    --r;
    nest.inner = shape[r];
    for (int k = 0; k < n; ++k) nest.inner_stride[k] = stride[k][r];
  }
  nest.rank = r;
  for (int d = 0; d < r; ++d) {
    nest.shape[d] = shape[d];
    nest.outer *= shape[d];
    for (int k = 0; k < n; ++k) nest.stride[k][d] = stride[k][d];
  }
  return nest;
}

// Calls row(offsets of the N operands in elements, number of elements). The cut into rows does not depend on the thread
// count. Ends early if the call is stopped.
template <int N, class Row>
static inline void for_rows(const Call& c, const Nest<N>& nest, const Row& row, int n_operands = N) {
  const int64_t pieces = (nest.inner + row_chunk - 1) / row_chunk, units = nest.outer * pieces;
#pragma omp parallel if (nest.outer * nest.inner > parallel_grain)
  {
    const int64_t threads = omp_get_num_threads(), me = omp_get_thread_num();
    const int64_t begin = units * me / threads, end = units * (me + 1) / threads;
    int64_t index[max_rank] = {}, base[N] = {}, rest = begin / (pieces ? pieces : 1);
    for (int d = nest.rank - 1; d >= 0; --d) {
      index[d] = rest % nest.shape[d];
      rest /= nest.shape[d];
      for (int k = 0; k < n_operands; ++k) base[k] += index[d] * nest.stride[k][d];
    }
    int64_t piece = pieces ? begin % pieces : 0;
    for (int64_t u = begin; u < end; ++u) {
      if ((u - begin) % look_rows == 0 && c.stopped()) break;
      const int64_t first = piece * row_chunk;
      const int64_t n = nest.inner - first < row_chunk ? nest.inner - first : row_chunk;
      int64_t at[N];
      for (int k = 0; k < n_operands; ++k) at[k] = base[k] + first * nest.inner_stride[k];
      row(at, n);
      if (++piece < pieces) continue;
      piece = 0;
      for (int d = nest.rank - 1; d >= 0; --d) {
        for (int k = 0; k < n_operands; ++k) base[k] += nest.stride[k][d];
        if (++index[d] < nest.shape[d]) break;
        for (int k = 0; k < n_operands; ++k) base[k] -= nest.shape[d] * nest.stride[k][d];
        index[d] = 0;
      }
    }
  }
}

// Runs `body(begin, end)` on equal shares of [0, n), one per thread. `cost`: elements per item. Items are independent,
// so the thread count does not change the bits.
template <class Body>
static void for_share(int64_t n, int64_t cost, const Body& body) {
#pragma omp parallel if (n > 1 && n * cost > parallel_grain)
  {
    const int64_t threads = omp_get_num_threads(), me = omp_get_thread_num();
    const int64_t begin = n * me / threads, end = n * (me + 1) / threads;
    if (begin < end) body(begin, end);
  }
}

// Like for_share, but a thread takes its share in pieces, and ends early if the call is stopped. Not for a body that
// starts with work for the whole operation.
template <class Body>
static void for_stoppable(const Call& c, int64_t n, int64_t cost, const Body& body) {
  const int64_t step = cost < look_elements ? look_elements / (cost > 0 ? cost : 1) : 1;
  for_share(n, cost, [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end && !c.stopped(); at += step) body(at, end - at < step ? end : at + step);
  });
}

}  // namespace rille::kernels::RILLE_SPACE

// Runs `body` with T as the element type.
#define RILLE_FLOATS(dtype, ...)          \
  do {                                    \
    if ((dtype) == ::rille::DType::f32) { \
      using T = float;                    \
      __VA_ARGS__;                        \
    } else {                              \
      using T = double;                   \
      __VA_ARGS__;                        \
    }                                     \
  } while (0)
#define RILLE_NUMBERS(dtype, ...) \
  do {                            \
    switch (dtype) {              \
      case ::rille::DType::f32: { \
        using T = float;          \
        __VA_ARGS__;              \
        break;                    \
      }                           \
      case ::rille::DType::f64: { \
        using T = double;         \
        __VA_ARGS__;              \
        break;                    \
      }                           \
      case ::rille::DType::i64: { \
        using T = int64_t;        \
        __VA_ARGS__;              \
        break;                    \
      }                           \
      case ::rille::DType::i32: { \
        using T = int32_t;        \
        __VA_ARGS__;              \
        break;                    \
      }                           \
      case ::rille::DType::i8: {  \
        using T = int8_t;         \
        __VA_ARGS__;              \
        break;                    \
      }                           \
      default: {                  \
        using T = uint8_t;        \
        __VA_ARGS__;              \
        break;                    \
      }                           \
    }                             \
  } while (0)
