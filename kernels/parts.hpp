// What reductions walk over: the outer and the reduced part of an operand, as rows or as columns.
#pragma once

#include "kernels/element.hpp"
#include "kernels/nest.hpp"

namespace rille::kernels::RILLE_ISA {

// The outer and the reduced part of in[0]: its last attrs.i[0] dimensions are reduced.
struct Parts {
  View outer, reduced;
  int64_t n_outer, n_reduced;
  Nest<1> nest;                                       // of the reduced part
  explicit Parts(const Call& c) : outer(c.in[0]), reduced(c.in[0]) {
    const int k = int(c.attrs->i[0]), r = c.in[0].shape.n - k;
    outer.shape.n = outer.strides.n = r;
    reduced.shape.n = reduced.strides.n = k;
    for (int d = 0; d < k; ++d) {
      reduced.shape[d] = c.in[0].shape[r + d];
      reduced.strides[d] = c.in[0].strides[r + d];
    }
    n_outer = outer.count();
    n_reduced = reduced.count();
    const View* const views[1] = {&reduced};
    nest = make_nest<1>(views);
  }
  bool dense() const { return nest.rank == 0 && (nest.inner_stride[0] == 1 || n_reduced <= 1); }
  int64_t offset(int64_t i) const {                   // of outer element i
    int64_t at = 0;
    for (int d = outer.shape.n - 1; d >= 0; --d) {
      at += i % outer.shape[d] * outer.strides[d];
      i /= outer.shape[d];
    }
    return at;
  }
};

// visit(offset, n, stride) for the rows of the reduced part, in a fixed order.
template <class V>
static inline void reduced_rows(const Nest<1>& nest, int64_t base, const V& visit) {
  for (int64_t o = 0; o < nest.outer; ++o) {
    int64_t at = base, rest = o;
    for (int d = nest.rank - 1; d >= 0; --d) {
      at += rest % nest.shape[d] * nest.stride[0][d];
      rest /= nest.shape[d];
    }
    visit(at, nest.inner, nest.inner_stride[0]);
  }
}

// Over leading dimensions the outer elements lie side by side. Then tile(first, n) is called for the columns, at most
// `widest_tile` at once; what a column gives does not depend on the tile in which it lies.
static constexpr int64_t widest_tile = 512;
template <class F>
static bool over_columns(const Parts& p, const F& tile) {
  const View* const views[1] = {&p.outer};
  const auto columns = make_nest<1>(views);
  if (columns.rank != 0 || columns.inner_stride[0] != 1 || columns.inner < 8) return false;
  const int64_t threads = omp_get_max_threads(), share = (columns.inner + threads - 1) / threads;
  const int64_t even = (share + 63) / 64 * 64, width = even < widest_tile ? even : widest_tile;
  for_share((columns.inner + width - 1) / width, p.n_reduced * width, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      const int64_t first = g * width;
      tile(first, columns.inner - first < width ? columns.inner - first : width);
    }
  });
  return true;
}

// total[j] = the sum of f(x, j) over the elements of column j, for n columns from `x`: in T over at most 256 rows, then
// in A. Four rows at a time, so that the sums are seldom stored.
template <class S, class T, class A, class F>
static inline void column_sums(const S* x, const Nest<1>& rows, int64_t n, A* total, const F& f) {
  T part[widest_tile];
  int64_t in_part = 0;
  for (int64_t j = 0; j < n; ++j) total[j] = 0, part[j] = 0;
  const auto spill = [&] {
    for (int64_t j = 0; j < n; ++j) total[j] += A(part[j]), part[j] = 0;
    in_part = 0;
  };
  reduced_rows(rows, 0, [&](int64_t at, int64_t m, int64_t s) {
    int64_t i = 0;
    for (; i + 4 <= m; i += 4) {
      const S *a = x + at + i * s, *b = a + s, *c = b + s, *d = c + s;
#pragma omp simd
      for (int64_t j = 0; j < n; ++j) part[j] += (f(a[j], j) + f(b[j], j)) + (f(c[j], j) + f(d[j], j));
      if ((in_part += 4) >= 256) spill();
    }
    for (; i < m; ++i) {
      const S* row = x + at + i * s;
#pragma omp simd
      for (int64_t j = 0; j < n; ++j) part[j] += f(row[j], j);
      if (++in_part >= 256) spill();
    }
  });
  spill();
}

}  // namespace rille::kernels::RILLE_ISA
