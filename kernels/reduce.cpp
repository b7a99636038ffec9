// Reductions. in[0] is viewed as [outer.., reduced..]: its last attrs.i[0] dimensions are reduced (the caller permutes
// the view without a copy). out[0] is contiguous and has the outer shape. f16 and bf16 are summed in f32.
//
// Sums of f32 run in f32 within blocks of 4096 elements, and in f64 across blocks. The blocks, and so the bits, do not
// depend on the number of threads. Columns (a reduction over leading dimensions) are summed row after row, vectorized
// across the columns.
#include <math.h>

#include "kernels/half.hpp"
#include "kernels/nest.hpp"

namespace rille::kernels::RILLE_ISA {

template <class T>
struct Wide {
  using type = T;
};
template <>
struct Wide<float> {
  using type = double;
};
template <>
struct Wide<uint8_t> {
  using type = int64_t;
};
template <>
struct Wide<int8_t> {
  using type = int64_t;
};
template <>
struct Wide<int32_t> {
  using type = int64_t;
};

template <class T>
static inline typename Wide<T>::type block_sum(const T* x, int64_t n, int64_t s) {
  using A = typename Wide<T>::type;
  if constexpr (sizeof(T) == 4 && T(0.5) != T(0)) {  // T is float
    T sum = 0;
    if (s == 1) {
#pragma omp simd reduction(+ : sum)
      for (int64_t i = 0; i < n; ++i) sum += x[i];
    } else {
      for (int64_t i = 0; i < n; ++i) sum += x[i * s];
    }
    return A(sum);
  } else {
    A sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += A(x[i * s]);
    return sum;
  }
}

// The outer and the reduced dimensions of in[0], as separate views.
struct Parts {
  View outer, reduced;
  int64_t n_outer, n_reduced;
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
  }
  static int64_t offset(const Dims& shape, const Dims& strides, int64_t i) {
    int64_t at = 0;
    for (int d = shape.n - 1; d >= 0; --d) {
      at += i % shape[d] * strides[d];
      i /= shape[d];
    }
    return at;
  }
};

static constexpr int64_t block = 4096;
static constexpr int64_t piece = 64 * block;  // a multiple of `block`, so that cutting a row changes no sum

// Calls visit(offset, n, stride) for each row of the reduced dimensions, in a fixed order; for a long row once per
// piece. Ends early if the call is stopped.
template <class V>
static void reduced_rows(const Call& c, const Nest<1>& nest, int64_t base, const V& visit) {
  for (int64_t o = 0; o < nest.outer; ++o) {
    if (o % look_rows == look_rows - 1 && c.stopped()) return;
    int64_t at = base, rest = o;
    for (int d = nest.rank - 1; d >= 0; --d) {
      at += rest % nest.shape[d] * nest.stride[0][d];
      rest /= nest.shape[d];
    }
    const int64_t stride = nest.inner_stride[0];
    for (int64_t i = 0; i < nest.inner; i += piece) {
      if (i > 0 && c.stopped()) return;
      visit(at + i * stride, nest.inner - i < piece ? nest.inner - i : piece, stride);
    }
  }
}

// Sums all elements to one number, with f64 partial sums per block of contiguous memory.
template <class T, class O>
static bool sum_all(const Call& c, const Parts& p, double factor) {
  const View* const views[1] = {&p.reduced};
  const auto nest = make_nest<1>(views);
  if (p.n_outer != 1 || nest.rank != 0 || nest.inner_stride[0] != 1 || p.n_reduced <= 4 * block) return false;
  using A = typename Wide<T>::type;
  const int64_t blocks = (p.n_reduced + block - 1) / block;
  A* partial = static_cast<A*>(c.lane->scratch(size_t(blocks) * sizeof(A)));
  if (!partial) return false;
  const T* x = c.in[0].ptr<T>();
  for_stoppable(c, blocks, block, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b)
      partial[b] = block_sum(x + b * block, p.n_reduced - b * block < block ? p.n_reduced - b * block : block, 1);
  });
  A total = 0;
  for (int64_t b = 0; b < blocks; ++b) total += partial[b];
  *c.out[0].ptr<O>() = factor != 0 ? O(double(total) * factor) : O(total);
  return true;
}

// Sums over leading dimensions, where neighbouring outputs are adjacent in memory. One thread sums each share of
// columns.
template <class T, class O>
static bool sum_columns(const Call& c, const Parts& p, double factor) {
  const View* const views[1] = {&p.outer};
  const auto cols = make_nest<1>(views);
  if (cols.rank != 0 || cols.inner_stride[0] != 1 || cols.inner < 8) return false;
  const View* const rviews[1] = {&p.reduced};
  const auto rows = make_nest<1>(rviews);
  const T* x = c.in[0].ptr<T>();
  O* out = c.out[0].ptr<O>();
  static constexpr int64_t width = 64;
  for_stoppable(c, (cols.inner + width - 1) / width, p.n_reduced * width, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      const int64_t first = g * width, n = cols.inner - first < width ? cols.inner - first : width;
      double total[width] = {};
      O part[width] = {};
      int64_t in_block = 0;
      const auto spill = [&] {
        for (int64_t j = 0; j < width; ++j) {
          total[j] += double(part[j]);
          part[j] = 0;
        }
        in_block = 0;
      };
      reduced_rows(c, rows, first, [&](int64_t at, int64_t m, int64_t s) {
        for (int64_t i = 0; i < m; ++i) {
          const T* row = x + at + i * s;
          if (n == width) {
#pragma omp simd
            for (int64_t j = 0; j < width; ++j) part[j] += O(row[j]);
          } else {
            for (int64_t j = 0; j < n; ++j) part[j] += O(row[j]);
          }
          if (++in_block == 256 && T(0.5) != T(0)) spill();
        }
      });
      if (T(0.5) != T(0)) {
        spill();
        for (int64_t j = 0; j < n; ++j) out[first + j] = O(factor != 0 ? total[j] * factor : total[j]);
      } else {
        for (int64_t j = 0; j < n; ++j) out[first + j] = factor != 0 ? O(double(part[j]) * factor) : part[j];
      }
    }
  });
  return true;
}

template <class T, class O>
static void sum_as(const Call& c) {
  const Parts p(c);
  const double factor = c.attrs->f[0];
  if (sum_all<T, O>(c, p, factor) || sum_columns<T, O>(c, p, factor)) return;
  const View* const views[1] = {&p.reduced};
  const auto nest = make_nest<1>(views);
  const T* x = c.in[0].ptr<T>();
  O* out = c.out[0].ptr<O>();
  for_stoppable(c, p.n_outer, p.n_reduced, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      typename Wide<T>::type total = 0;
      reduced_rows(c, nest, Parts::offset(p.outer.shape, p.outer.strides, o), [&](int64_t at, int64_t n, int64_t s) {
        for (int64_t i = 0; i < n; i += block) total += block_sum(x + at + i * s, n - i < block ? n - i : block, s);
      });
      out[o] = factor != 0 ? O(double(total) * factor) : O(total);
    }
  });
}

// Runs `kernel`, which supports f32 and f64. For f16 and bf16 it makes f32 copies of a few outer rows at a time, so
// that they stay in the cache.
static void in_slabs(const Call& c, Kernel kernel) {
  static constexpr int64_t elements = 131072;
  const View &in = c.in[0], &out = c.out[0];
  const int64_t rows = in.shape.n > int(c.attrs->i[0]) ? in.shape[0] : 1, count = in.count();
  if (!is_half(in.dtype)) return kernel(c);
  if (rows < 2 || count <= elements) return widened(c, kernel);
  const int64_t each = count / rows < elements ? elements / (count / rows) : 1, results = out.count() / rows;
  for (int64_t first = 0; first < rows && !c.stopped(); first += each) {
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

static double widened_sum(DType t, const uint16_t* x, int64_t n) {  // n: at most `block` elements
  float wide[block];
  widen_row(t, x, 1, wide, n);
  return block_sum(wide, n, 1);
}

// Sums dense rows of f16 or bf16, widened block by block, in the same order as sum_all and sum_as.
static bool sum_halves(const Call& c) {
  const Parts p(c);
  const View* const views[1] = {&p.reduced};
  const auto nest = make_nest<1>(views);
  if (nest.rank != 0 || (nest.inner_stride[0] != 1 && p.n_reduced > 1)) return false;
  const DType t = c.in[0].dtype;
  const uint16_t* x = c.in[0].ptr<uint16_t>();
  const auto at = [&](const uint16_t* row, int64_t b) {
    const int64_t left = p.n_reduced - b * block;
    return widened_sum(t, row + b * block, left < block ? left : block);
  };
  const auto give = [&](int64_t o, double total) {
    const float value = float(c.attrs->f[0] != 0 ? total * c.attrs->f[0] : total);
    if (is_half(c.out[0].dtype)) narrow_row(c.out[0].dtype, &value, c.out[0].ptr<uint16_t>() + o, 1, 1);
    else c.out[0].ptr<float>()[o] = value;
  };
  const int64_t blocks = (p.n_reduced + block - 1) / block;
  if (p.n_outer != 1) {
    for_stoppable(c, p.n_outer, p.n_reduced, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        const uint16_t* row = x + Parts::offset(p.outer.shape, p.outer.strides, o);
        double total = 0;
        for (int64_t b = 0; b < blocks; ++b) total += at(row, b);
        give(o, total);
      }
    });
    return true;
  }
  double* partial = static_cast<double*>(c.lane->scratch(size_t(blocks) * sizeof(double)));
  if (!partial) return false;
  for_stoppable(c, blocks, block, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) partial[b] = at(x, b);
  });
  double total = 0;
  for (int64_t b = 0; b < blocks; ++b) total += partial[b];
  give(0, total);
  return true;
}

static void sum_wide(const Call& c) {
  switch (c.in[0].dtype) {
    case DType::f32: return sum_as<float, float>(c);
    case DType::f64: return sum_as<double, double>(c);
    case DType::i64: return sum_as<int64_t, int64_t>(c);
    case DType::i32: return sum_as<int32_t, int64_t>(c);
    case DType::i8: return sum_as<int8_t, int64_t>(c);
    default: return sum_as<uint8_t, int64_t>(c);
  }
}
// The result is multiplied by attrs.f[0] if that is not 0 (for mean); out is i64 for integers.
void sum(const Call& c) {
  if (!is_half(c.in[0].dtype) || !sum_halves(c)) in_slabs(c, &sum_wide);
}

// The largest (or smallest) of n contiguous elements, vectorized; NaN if any element is NaN.
template <bool largest, class T>
static inline T extreme_of_row(const T* x, int64_t n) {
  T best = x[0];
  int nan = 0;
  if (largest) {
#pragma omp simd reduction(max : best) reduction(| : nan)
    for (int64_t i = 0; i < n; ++i) {
      best = x[i] > best ? x[i] : best;
      nan |= x[i] != x[i];
    }
  } else {
#pragma omp simd reduction(min : best) reduction(| : nan)
    for (int64_t i = 0; i < n; ++i) {
      best = x[i] < best ? x[i] : best;
      nan |= x[i] != x[i];
    }
  }
  if (nan)
    for (int64_t i = 0; i < n; ++i)
      if (x[i] != x[i]) return x[i];
  return best;
}

// Extremes over leading dimensions, like sum_columns: row after row, vectorized across 64 columns.
template <class T, class Better>
static bool extreme_columns(const Call& c, const Parts& p, const Better& better) {
  const View* const views[1] = {&p.outer};
  const auto cols = make_nest<1>(views);
  if (cols.rank != 0 || cols.inner_stride[0] != 1 || cols.inner < 8) return false;
  const View* const rviews[1] = {&p.reduced};
  const auto rows = make_nest<1>(rviews);
  static constexpr int64_t width = 64;
  for_stoppable(c, (cols.inner + width - 1) / width, p.n_reduced * width, [&](int64_t begin, int64_t end) {
    for (int64_t g = begin; g < end; ++g) {
      const int64_t first = g * width, n = cols.inner - first < width ? cols.inner - first : width;
      const T* x = c.in[0].ptr<T>();
      T* best = c.out[0].ptr<T>() + first;
      for (int64_t j = 0; j < n; ++j) best[j] = x[first + j];
      reduced_rows(c, rows, first, [&](int64_t at, int64_t m, int64_t s) {
        for (int64_t i = 0; i < m; ++i) {
          const T* row = x + at + i * s;
          for (int64_t j = 0; j < n; ++j) best[j] = better(row[j], best[j]) || row[j] != row[j] ? row[j] : best[j];
        }
      });
    }
  });
  return true;
}

// Reduces to the largest or smallest element. better(x, best): whether x replaces best. NaN propagates.
template <bool largest, class T, class Better>
static void extreme(const Call& c, const Better& better) {
  const Parts p(c);
  if (extreme_columns<T>(c, p, better)) return;
  const View* const views[1] = {&p.reduced};
  const auto nest = make_nest<1>(views);
  const T* x = c.in[0].ptr<T>();
  T* out = c.out[0].ptr<T>();
  for_stoppable(c, p.n_outer, p.n_reduced, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      const int64_t base = Parts::offset(p.outer.shape, p.outer.strides, o);
      T best = x[base];
      reduced_rows(c, nest, base, [&](int64_t at, int64_t n, int64_t s) {
        if (s == 1 && best == best) {
          const T v = extreme_of_row<largest>(x + at, n);
          if (better(v, best) || v != v) best = v;
        } else {
          for (int64_t i = 0; i < n; ++i)
            if (better(x[at + i * s], best) || x[at + i * s] != x[at + i * s]) best = x[at + i * s];
        }
      });
      out[o] = best;
    }
  });
}

static void greatest(const Call& c) {
  RILLE_NUMBERS(c.in[0].dtype, extreme<true, T>(c, [](T a, T b) { return a > b; }));
}
static void least(const Call& c) {
  RILLE_NUMBERS(c.in[0].dtype, extreme<false, T>(c, [](T a, T b) { return a < b; }));
}
void amax(const Call& c) { in_slabs(c, &greatest); }
void amin(const Call& c) { in_slabs(c, &least); }

template <class T, class Better>
static void place_of_extreme(const Call& c, const Better& better) {
  const Parts p(c);
  int64_t* out = c.out[0].ptr<int64_t>();
  const T* x = c.in[0].ptr<T>();
  const int64_t s = p.reduced.strides[0];
  for_stoppable(c, p.n_outer, p.n_reduced, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      const T* row = x + Parts::offset(p.outer.shape, p.outer.strides, o);
      int64_t best = 0;
      for (int64_t i = 1; i < p.n_reduced; ++i) {
        if (row[best * s] != row[best * s] || (i % piece == 0 && c.stopped())) break;
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

// Reduces one dimension to the index of its maximum or minimum; out: i64, the first of equal elements.
void argmax(const Call& c) { in_slabs(c, &place_of_largest); }
void argmin(const Call& c) { in_slabs(c, &place_of_smallest); }

template <class T, class A>
static void prod_as(const Call& c) {
  const Parts p(c);
  const View* const views[1] = {&p.reduced};
  const auto nest = make_nest<1>(views);
  for_stoppable(c, p.n_outer, p.n_reduced, [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      A product = 1;
      reduced_rows(c, nest, Parts::offset(p.outer.shape, p.outer.strides, o), [&](int64_t at, int64_t n, int64_t s) {
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
// The product of the reduced elements: floats are multiplied in f64, integers in i64.
void prod(const Call& c) { in_slabs(c, &prod_wide); }

}  // namespace rille::kernels::RILLE_ISA
