// Sums and extremes. Accumulation: f32, f16 and bf16 in f32 over blocks of 4096 elements and in f64 across the blocks;
// the blocks do not depend on the number of threads, so neither do the bits. Columns (a reduction over leading
// dimensions) are summed row after row, vectorised across the columns.
#include "kernels/reduce.hpp"

#include <math.h>

#include "kernels/parts.hpp"
#include "kernels/sums.hpp"

namespace rille::kernels::RILLE_ISA {

// What elements are added up in: in a block, and across blocks.
template <class S> struct Added { using block = int64_t; using total = int64_t; };
template <> struct Added<float> { using block = float; using total = double; };
template <> struct Added<F16> { using block = float; using total = double; };
template <> struct Added<Bf16> { using block = float; using total = double; };
template <> struct Added<double> { using block = double; using total = double; };

template <class S> static inline typename Added<S>::total block_sum(const S* x, int64_t n, int64_t s) {
  using T = typename Added<S>::block;
  if (s == 1) return sum_of<T>(n, [=](int64_t i) { return T(widen(x[i])); });
  return sum_of<T>(n, [=](int64_t i) { return T(widen(x[i * s])); });
}

// One result; `factor` unless 0 makes a mean of a sum.
template <class A> static inline void give(const View& out, int64_t o, A total, double factor) {
  if constexpr (same_type<A, double>) put_element(out, o, factor != 0 ? total * factor : total);
  else out.ptr<int64_t>()[o] = total;
}

// Everything to one number: a partial sum for each block, by several threads.
template <class S>
static bool sum_all(const Call& c, const Parts& p) {
  using A = typename Added<S>::total;
  if (p.n_outer != 1 || !p.dense() || p.n_reduced <= 4 * sum_block) return false;
  const int64_t blocks = (p.n_reduced + sum_block - 1) / sum_block;
  A* partial = static_cast<A*>(c.lane->scratch(size_t(blocks) * sizeof(A)));
  if (!partial) return false;
  const S* x = c.in[0].ptr<S>();
  for_share(blocks, sum_block, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t left = p.n_reduced - b * sum_block;
      partial[b] = block_sum(x + b * sum_block, left < sum_block ? left : sum_block, 1);
    }
  });
  A total = 0;
  for (int64_t b = 0; b < blocks; ++b) total += partial[b];
  give(c.out[0], 0, total, c.attrs->f[0]);
  return true;
}

template <class S>
static bool sum_columns(const Call& c, const Parts& p) {
  using T = typename Added<S>::block;
  using A = typename Added<S>::total;
  return over_columns(p, [&](int64_t first, int64_t n) {
    A total[widest_tile];
    column_sums<S, T>(c.in[0].ptr<S>() + first, p.nest, n, total, [](S x, int64_t) { return T(widen(x)); });
    for (int64_t j = 0; j < n; ++j) give(c.out[0], first + j, total[j], c.attrs->f[0]);
  });
}

template <class S>
static void sum_as(const Call& c) {
  const Parts p(c);
  if (sum_all<S>(c, p) || sum_columns<S>(c, p)) return;
  const S* x = c.in[0].ptr<S>();
  for_share(p.n_outer, p.n_reduced, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      typename Added<S>::total total = 0;
      reduced_rows(p.nest, p.offset(o), [&](int64_t at, int64_t n, int64_t s) {
        for (int64_t i = 0; i < n; i += sum_block)
          total += block_sum(x + at + i * s, n - i < sum_block ? n - i : sum_block, s);
      });
      give(c.out[0], o, total, c.attrs->f[0]);
    }
  });
}

void sum(const Call& c) {
  switch (c.in[0].dtype) {
    case DType::i64: return sum_as<int64_t>(c);
    case DType::i32: return sum_as<int32_t>(c);
    case DType::i8: return sum_as<int8_t>(c);
    case DType::f16: case DType::bf16: case DType::f32: case DType::f64:
      RILLE_REALS(c.in[0].dtype, sum_as<S>(c));
      return;
    default: return sum_as<uint8_t>(c);
  }
}

// Runs `kernel`, which knows f32 and f64, on f16 and bf16 as well: on f32 copies of so many outer rows at a time that
// they stay in the cache.
static void in_slabs(const Call& c, Kernel kernel) {
  static constexpr int64_t elements = 131072;
  const View &in = c.in[0], &out = c.out[0];
  const int64_t rows = in.shape.n > int(c.attrs->i[0]) ? in.shape[0] : 1, count = in.count();
  if (!is_half(in.dtype)) return kernel(c);
  if (rows < 2 || count <= elements) return widened(c, kernel);
  const int64_t each = count / rows < elements ? elements / (count / rows) : 1, results = out.count() / rows;
  for (int64_t first = 0; first < rows; first += each) {
    View x = in, y = out;
    x.shape[0] = y.shape[0] = rows - first < each ? rows - first : each;
    x.data = in.ptr<char>() + first * in.strides[0] * int64_t(size_bytes(in.dtype));
    y.data = out.ptr<char>() + first * results * int64_t(size_bytes(out.dtype));
    Call slab = c;
    slab.in = &x;
    slab.out = &y;
    widened(slab, kernel);
  }
}

template <bool largest, class T> RILLE_INLINE T better_of(T x, T best) {
  return (largest ? x > best : x < best) ? x : best;
}
// A NaN wins and stays.
template <bool largest, class T> RILLE_INLINE T extreme_of(T x, T best) {
  return best != best ? best : x != x ? x : better_of<largest>(x, best);
}

// The largest (or smallest) of dense elements, as vectors, two halves side by side.
template <bool largest, class S> static inline Computed<S> extreme_of_row(const S* x, int64_t n) {
  using T = Computed<S>;
  T a = widen(x[0]), b = a;
  int nan = 0;
  const int64_t q = n / 2;
  if (largest) {
#pragma omp simd reduction(max : a, b) reduction(| : nan)
    for (int64_t i = 0; i < q; ++i) {
      const T u = widen(x[i]), v = widen(x[i + q]);
      a = u > a ? u : a;
      b = v > b ? v : b;
      nan |= (u != u) | (v != v);
    }
  } else {
#pragma omp simd reduction(min : a, b) reduction(| : nan)
    for (int64_t i = 0; i < q; ++i) {
      const T u = widen(x[i]), v = widen(x[i + q]);
      a = u < a ? u : a;
      b = v < b ? v : b;
      nan |= (u != u) | (v != v);
    }
  }
  const T last = widen(x[n - 1]);
  if (nan || last != last)
    for (int64_t i = 0; i < n; ++i) if (widen(x[i]) != widen(x[i])) return widen(x[i]);
  return better_of<largest>(last, better_of<largest>(a, b));
}

// Over leading dimensions, as sum_columns.
template <bool largest, class S>
static bool extreme_columns(const Call& c, const Parts& p) {
  return over_columns(p, [&](int64_t first, int64_t n) {
    const S* x = c.in[0].ptr<S>() + first;
    Computed<S> best[widest_tile];
    for (int64_t j = 0; j < n; ++j) best[j] = widen(x[j]);
    reduced_rows(p.nest, 0, [&](int64_t at, int64_t m, int64_t s) {
      for (int64_t i = 0; i < m; ++i) {
        const S* row = x + at + i * s;
#pragma omp simd
        for (int64_t j = 0; j < n; ++j) best[j] = extreme_of<largest>(widen(row[j]), best[j]);
      }
    });
    for (int64_t j = 0; j < n; ++j) c.out[0].ptr<S>()[first + j] = narrow<S>(best[j]);
  });
}

// Everything to one number: that of each block, by several threads.
template <bool largest, class S>
static bool extreme_of_all(const Call& c, const Parts& p) {
  using T = Computed<S>;
  if (p.n_outer != 1 || !p.dense() || p.n_reduced <= 4 * sum_block) return false;
  const int64_t blocks = (p.n_reduced + sum_block - 1) / sum_block;
  T* partial = static_cast<T*>(c.lane->scratch(size_t(blocks) * sizeof(T)));
  if (!partial) return false;
  const S* x = c.in[0].ptr<S>();
  for_share(blocks, sum_block, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t left = p.n_reduced - b * sum_block;
      partial[b] = extreme_of_row<largest>(x + b * sum_block, left < sum_block ? left : sum_block);
    }
  });
  T best = partial[0];
  for (int64_t b = 1; b < blocks; ++b) best = extreme_of<largest>(partial[b], best);
  *c.out[0].ptr<S>() = narrow<S>(best);
  return true;
}

template <bool largest, class S>
static void extreme(const Call& c) {
  const Parts p(c);
  if (extreme_of_all<largest, S>(c, p) || extreme_columns<largest, S>(c, p)) return;
  const S* x = c.in[0].ptr<S>();
  for_share(p.n_outer, p.n_reduced, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      const int64_t base = p.offset(o);
      Computed<S> best = widen(x[base]);
      reduced_rows(p.nest, base, [&](int64_t at, int64_t n, int64_t s) {
        if (s == 1) best = extreme_of<largest>(extreme_of_row<largest>(x + at, n), best);
        else for (int64_t i = 0; i < n; ++i) best = extreme_of<largest>(widen(x[at + i * s]), best);
      });
      c.out[0].ptr<S>()[o] = narrow<S>(best);
    }
  });
}

template <bool largest>
static void extreme_in(const Call& c) {
  switch (c.in[0].dtype) {
    case DType::i64: return extreme<largest, int64_t>(c);
    case DType::i32: return extreme<largest, int32_t>(c);
    case DType::i8: return extreme<largest, int8_t>(c);
    case DType::f16: case DType::bf16: case DType::f32: case DType::f64:
      RILLE_REALS(c.in[0].dtype, extreme<largest, S>(c));
      return;
    default: return extreme<largest, uint8_t>(c);
  }
}
void amax(const Call& c) { extreme_in<true>(c); }
void amin(const Call& c) { extreme_in<false>(c); }

template <class T, class Better>
static void place_of_extreme(const Call& c, const Better& better) {
  const Parts p(c);
  int64_t* out = c.out[0].ptr<int64_t>();
  const T* x = c.in[0].ptr<T>();
  const int64_t s = p.reduced.strides[0];
  for_share(p.n_outer, p.n_reduced, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      const T* row = x + p.offset(o);
      int64_t best = 0;
      for (int64_t i = 1; i < p.n_reduced; ++i) {
        if (row[best * s] != row[best * s]) break;
        if (better(row[i * s], row[best * s]) || row[i * s] != row[i * s]) best = i;
      }
      out[o] = best;
    }
  });
}

static void place_of_largest(const Call& c) {
  RILLE_NUMBERS(c.in[0].dtype, place_of_extreme<T>(c, [](T a, T b) { return a > b; }));
}
static void place_of_smallest(const Call& c) {
  RILLE_NUMBERS(c.in[0].dtype, place_of_extreme<T>(c, [](T a, T b) { return a < b; }));
}

void argmax(const Call& c) { in_slabs(c, &place_of_largest); }
void argmin(const Call& c) { in_slabs(c, &place_of_smallest); }

template <class T, class A>
static void prod_as(const Call& c) {
  const Parts p(c);
  for_share(p.n_outer, p.n_reduced, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      A product = 1;
      reduced_rows(p.nest, p.offset(o), [&](int64_t at, int64_t n, int64_t s) {
        for (int64_t i = 0; i < n; ++i) product *= A(c.in[0].ptr<T>()[at + i * s]);
      });
      c.out[0].ptr<T>()[o] = T(product);
    }
  });
}

static void prod_wide(const Call& c) {
  if (c.in[0].dtype == DType::i64) return prod_as<int64_t, uint64_t>(c);
  RILLE_FLOATS(c.in[0].dtype, prod_as<T, double>(c));
}
void prod(const Call& c) { in_slabs(c, &prod_wide); }

}  // namespace rille::kernels::RILLE_ISA
