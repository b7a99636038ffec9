// Products of matrices that fit the first-level cache, and copies into it, for kernels with many such products. A
// library would pack its operands and choose an algorithm for each product, which takes as long as the product.
#pragma once

#include "kernels/half.hpp"

namespace rille::kernels::RILLE_ISA {

// The vector width, and the most vectors of a result row that fit into registers while four rows are computed at once.
#if defined(__AVX512F__)
static constexpr int vector_bytes = 64, row_vectors = 4;
#elif defined(__AVX__)
static constexpr int vector_bytes = 32, row_vectors = 2;
#else
static constexpr int vector_bytes = 16, row_vectors = 2;
#endif
template <class T>
struct Lanes {
  typedef T type __attribute__((vector_size(vector_bytes), aligned(alignof(T)), may_alias));  // aligned only as T needs
  static constexpr int64_t count = vector_bytes / sizeof(T);
  static int64_t up(int64_t n) { return (n + count - 1) / count * count; }
};

// A matrix whose element (i, p) is data[i * down + p * across].
template <class T>
struct Strided {
  const T* data;
  int64_t down, across;
};

// Four rows of `V` vectors: c = (or, with `adds`, +=) the sum over p < depth of a(i, p) times row p of b.
template <class T, int V, bool adds>
static inline void product_strip(Strided<T> a, const T* b, int64_t ldb, T* c, int64_t ldc, int64_t depth) {
  using L = typename Lanes<T>::type;
  constexpr int64_t lanes = Lanes<T>::count;
  L sum[4][V];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) sum[i][v] = adds ? *reinterpret_cast<const L*>(c + i * ldc + v * lanes) : L{};
  for (int64_t p = 0; p < depth; ++p) {
    L row[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) row[v] = *reinterpret_cast<const L*>(b + p * ldb + v * lanes);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const T x = a.data[i * a.down + p * a.across];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) sum[i][v] += x * row[v];
    }
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) *reinterpret_cast<L*>(c + i * ldc + v * lanes) = sum[i][v];
}

// Four rows: c = (or, with `adds`, +=) a b. `columns` is rounded up to whole vectors: b is read, and c written, that
// far.
template <class T, bool adds>
static void product_rows(Strided<T> a, const T* b, int64_t ldb, T* c, int64_t ldc, int64_t columns, int64_t depth) {
  constexpr int64_t lanes = Lanes<T>::count, most = lanes * row_vectors;
  for (; columns > most - lanes; columns -= most, b += most, c += most)
    product_strip<T, row_vectors, adds>(a, b, ldb, c, ldc, depth);
  if constexpr (row_vectors == 4) {
    if (columns > 2 * lanes) return product_strip<T, 3, adds>(a, b, ldb, c, ldc, depth);
    if (columns > lanes) return product_strip<T, 2, adds>(a, b, ldb, c, ldc, depth);
  }
  if (columns > 0) product_strip<T, 1, adds>(a, b, ldb, c, ldc, depth);
}
template <class T>
static inline void product_rows(Strided<T> a, const T* b, int64_t ldb, T* c, int64_t ldc, int64_t columns,
                                int64_t depth, bool adds) {
  if (adds) product_rows<T, true>(a, b, ldb, c, ldc, columns, depth);
  else product_rows<T, false>(a, b, ldb, c, ldc, columns, depth);
}

// A matrix of floats of any type, in which each row is contiguous.
struct Rows {
  char* data;
  DType dtype;
  int64_t stride, columns;
  Rows from(int64_t row) const { return {data + row * stride * int64_t(size_bytes(dtype)), dtype, stride, columns}; }
};

// Prefetches the memory after a row: it often belongs to the next head, which is needed soon, and the hardware
// prefetcher does not cover rows so far apart.
template <int writes>
static inline void ask_behind(const Rows& rows, const char* row) {
  const int64_t bytes = rows.columns * int64_t(size_bytes(rows.dtype));
  for (int64_t at = 0; at < bytes; at += 64) __builtin_prefetch(row + bytes + at, writes, 2);
}

// Loads `count` rows as T with row stride `ld`; fills with zeros after the last column and in the rows up to `padded`.
template <class T>
static void load_rows(const Rows& from, int64_t count, int64_t padded, T* to, int64_t ld) {
  for (int64_t r = 0; r < count; ++r) {
    const char* at = from.data + r * from.stride * int64_t(size_bytes(from.dtype));
    T* row = to + r * ld;
    ask_behind<0>(from, at);
    if constexpr (sizeof(T) == 4)
      if (is_half(from.dtype)) widen_row(from.dtype, reinterpret_cast<const uint16_t*>(at), 1, row, from.columns);
    if (!is_half(from.dtype)) memcpy(row, at, size_t(from.columns) * sizeof(T));
    for (int64_t j = from.columns; j < ld; ++j) row[j] = 0;
  }
  if (count < padded) memset(to + count * ld, 0, size_t((padded - count) * ld) * sizeof(T));
}

// Stores rows of T into `to`, converting to its type: the inverse of load_rows.
template <class T>
static void store_rows(const T* from, int64_t ld, int64_t count, const Rows& to) {
  for (int64_t r = 0; r < count; ++r) {
    char* at = to.data + r * to.stride * int64_t(size_bytes(to.dtype));
    ask_behind<1>(to, at);
    if constexpr (sizeof(T) == 4)
      if (is_half(to.dtype)) narrow_row(to.dtype, from + r * ld, reinterpret_cast<uint16_t*>(at), 1, to.columns);
    if (!is_half(to.dtype)) memcpy(at, from + r * ld, size_t(to.columns) * sizeof(T));
  }
}

// Transposes, in registers, a square with as many rows as a vector has lanes: step h swaps the h x h blocks on both
// sides of the diagonal.
template <class T>
static inline void turn_square(const T* x, int64_t ld, T* o, int64_t ldo) {
  using L = typename Lanes<T>::type;
  using Index = decltype(L{} < L{});
  constexpr int lanes = Lanes<T>::count;
  L row[lanes];
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) row[i] = *reinterpret_cast<const L*>(x + i * ld);
#pragma GCC unroll 4
  for (int h = 1; h < lanes; h *= 2) {
    Index low{}, high{};
#pragma GCC unroll 16
    for (int e = 0; e < lanes; ++e) {
      low[e] = e & h ? lanes + e - h : e;
      high[e] = e & h ? lanes + e : e + h;
    }
#pragma GCC unroll 16
    for (int i = 0; i < lanes; ++i) {
      if (i & h) continue;
      const L a = row[i], b = row[i + h];
      row[i] = __builtin_shuffle(a, b, low);
      row[i + h] = __builtin_shuffle(a, b, high);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < lanes; ++i) *reinterpret_cast<L*>(o + i * ldo) = row[i];
}

// o[p][j] = x[j][p] for p < depth and j < count, both multiples of the lane count; each row of o has `count` elements.
template <class T>
static void turn(const T* x, int64_t ld, int64_t depth, int64_t count, T* o) {
  constexpr int64_t lanes = Lanes<T>::count;
  for (int64_t p = 0; p < depth; p += lanes)
    for (int64_t j = 0; j < count; j += lanes) turn_square(x + j * ld + p, ld, o + p * count + j, count);
}

}  // namespace rille::kernels::RILLE_ISA
