// Softmax over the last dimension of contiguous rows, or along columns (attrs.i[apart_at], attrs.i[column_at]), and
// the gradients from the output y: in = {y, gradient}.
//
// The row's maximum is subtracted first, so that nothing overflows and the logarithm of the sum keeps its digits. Sums
// run in the element type, one row on one thread. Columns are processed 512 at a time on one thread, row after row, and
// are summed in f64 over 64 elements each.
#include "kernels/half.hpp"
#include "kernels/nest.hpp"
#include "kernels/rows.hpp"
#include "kernels/wide_rows.hpp"

namespace rille::kernels::RILLE_ISA {

template <class T, class F>
static void each_row(const Call& c, const F& f) {
  const View& v = c.out[0];
  const int64_t n = v.shape[v.shape.n - 1], rows = n ? v.count() / n : 0;
  for_stoppable(c, rows, n * 4, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) f(r, n);
  });
}

// Number of columns processed together. Row strides are often powers of two, so rows evict each other from the cache
// before they are read again; long pieces are read fastest.
static constexpr int64_t width = 512;

// `w` adjacent columns of n elements each.
struct Tile {
  int64_t first, apart, n, w;
};

// Returns a row of a tile: in place, or widened to f32 in `room`.
template <class T, bool half>
static inline const T* read(const View& v, int64_t at, int64_t w, T* room) {
  if constexpr (!half) return v.ptr<T>() + at;
  else widen_row(v.dtype, v.ptr<uint16_t>() + at, 1, room, w);
  return room;
}

// Writes each row of the result: step(at, row) computes the row at offset `at`.
template <class T, bool half, class F>
static inline void write_rows(const Call& c, const Tile& t, const F& step) {
  T room[width];
  for (int64_t i = 0; i < t.n; ++i) {
    const int64_t at = t.first + i * t.apart;
    step(at, half ? room : c.out[0].ptr<T>() + at);
    if constexpr (half) narrow_row(c.out[0].dtype, room, c.out[0].ptr<uint16_t>() + at, 1, t.w);
  }
}

template <class T, bool half>
static inline void column_max(const View& x, const Tile& t, T* top) {
  T room[width];
  for (int64_t j = 0; j < t.w; ++j) top[j] = -__builtin_inff();
  for (int64_t i = 0; i < t.n; ++i) {
    const T* row = read<T, half>(x, t.first + i * t.apart, t.w, room);
    for (int64_t j = 0; j < t.w; ++j) top[j] = row[j] > top[j] ? row[j] : top[j];
  }
}

// Sums each column of a tile: add(at, sums) adds the row at offset `at` to `sums`.
template <class T, class F>
static inline void column_sums(const Tile& t, T* sums, const F& add) {
  double total[width];
  T part[width];
  for (int64_t j = 0; j < t.w; ++j) total[j] = double(part[j] = 0);
  for (int64_t i = 0; i < t.n; ++i) {
    add(t.first + i * t.apart, part);
    if (i % 64 != 63 && i + 1 < t.n) continue;
    for (int64_t j = 0; j < t.w; ++j) {
      total[j] += double(part[j]);
      part[j] = 0;
    }
  }
  for (int64_t j = 0; j < t.w; ++j) sums[j] = T(total[j]);
}

struct SoftmaxOfTile {
  template <class T, bool half>
  static void go(const Call& c, const Tile& t) {
    T top[width], scale[width], room[width];
    column_max<T, half>(c.in[0], t, top);
    column_sums(t, scale, [&](int64_t at, T* sums) {
      const T* x = read<T, half>(c.in[0], at, t.w, room);
      T* y = half ? room : c.out[0].ptr<T>() + at;
      for (int64_t j = 0; j < t.w; ++j) {
        y[j] = vexp(x[j] - top[j]);
        sums[j] += y[j];
      }
    });
    for (int64_t j = 0; j < t.w; ++j) scale[j] = T(1) / scale[j];
    write_rows<T, half>(c, t, [&](int64_t at, T* y) {
      if constexpr (half) {  // computed again, because y has half precision only
        const T* x = read<T, half>(c.in[0], at, t.w, room);
        for (int64_t j = 0; j < t.w; ++j) y[j] = vexp(x[j] - top[j]) * scale[j];
      } else {
        for (int64_t j = 0; j < t.w; ++j) y[j] *= scale[j];
      }
    });
  }
};

struct LogSoftmaxOfTile {
  template <class T, bool half>
  static void go(const Call& c, const Tile& t) {
    T top[width], shift[width], room[width];
    column_max<T, half>(c.in[0], t, top);
    column_sums(t, shift, [&](int64_t at, T* sums) {
      const T* x = read<T, half>(c.in[0], at, t.w, room);
      for (int64_t j = 0; j < t.w; ++j) sums[j] += vexp(x[j] - top[j]);
    });
    for (int64_t j = 0; j < t.w; ++j) shift[j] = vlog(shift[j]);
    write_rows<T, half>(c, t, [&](int64_t at, T* y) {
      const T* x = read<T, half>(c.in[0], at, t.w, room);
      for (int64_t j = 0; j < t.w; ++j) y[j] = x[j] - top[j] - shift[j];
    });
  }
};

struct SoftmaxGradOfTile {
  template <class T, bool half>
  static void go(const Call& c, const Tile& t) {
    T dot[width], of_y[width], of_g[width];
    column_sums(t, dot, [&](int64_t at, T* sums) {
      const T *y = read<T, half>(c.in[0], at, t.w, of_y), *g = read<T, half>(c.in[1], at, t.w, of_g);
      for (int64_t j = 0; j < t.w; ++j) sums[j] += y[j] * g[j];
    });
    write_rows<T, half>(c, t, [&](int64_t at, T* o) {
      const T *y = read<T, half>(c.in[0], at, t.w, of_y), *g = read<T, half>(c.in[1], at, t.w, of_g);
      for (int64_t j = 0; j < t.w; ++j) o[j] = y[j] * (g[j] - dot[j]);
    });
  }
};

struct LogSoftmaxGradOfTile {
  template <class T, bool half>
  static void go(const Call& c, const Tile& t) {
    T total[width], of_y[width], of_g[width];
    column_sums(t, total, [&](int64_t at, T* sums) {
      const T* g = read<T, half>(c.in[1], at, t.w, of_g);
      for (int64_t j = 0; j < t.w; ++j) sums[j] += g[j];
    });
    write_rows<T, half>(c, t, [&](int64_t at, T* o) {
      const T *y = read<T, half>(c.in[0], at, t.w, of_y), *g = read<T, half>(c.in[1], at, t.w, of_g);
      for (int64_t j = 0; j < t.w; ++j) o[j] = g[j] - vexp(y[j]) * total[j];
    });
  }
};

// If the call runs along columns, computes it and returns true.
template <class F>
static bool in_columns(const Call& c) {
  const int64_t apart = c.attrs->i[apart_at], n = c.attrs->i[column_at], count = c.out[0].count();
  if (!apart) return false;
  if (!count) return true;
  const int64_t tiles = (apart + width - 1) / width;
  for_stoppable(c, count / (apart * n) * tiles, n * width * 4, [&](int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; ++u) {
      const int64_t column = u % tiles * width, left = apart - column;
      const Tile t{u / tiles * n * apart + column, apart, n, left < width ? left : width};
      if (is_half(c.out[0].dtype)) F::template go<float, true>(c, t);
      else if (c.out[0].dtype == DType::f32) F::template go<float, false>(c, t);
      else F::template go<double, false>(c, t);
    }
  });
  return true;
}

void softmax(const Call& c) {
  if (in_columns<SoftmaxOfTile>(c)) return;
  RILLE_FLOATS(c.out[0].dtype, each_row<T>(c, [&](int64_t r, int64_t n) {
                 T* y = c.out[0].ptr<T>() + r * n;
                 const T scale = T(1) / row_exp(c.in[0].ptr<T>() + r * n, y, n, row_max(c.in[0].ptr<T>() + r * n, n));
                 for (int64_t i = 0; i < n; ++i) y[i] *= scale;
               }));
}

void log_softmax(const Call& c) {
  if (in_columns<LogSoftmaxOfTile>(c)) return;
  RILLE_FLOATS(c.out[0].dtype, each_row<T>(c, [&](int64_t r, int64_t n) {
                 const T* x = c.in[0].ptr<T>() + r * n;
                 T* y = c.out[0].ptr<T>() + r * n;
                 const T m = row_max(x, n), shift = vlog(row_exp_sum(x, n, m));
                 for (int64_t i = 0; i < n; ++i) y[i] = x[i] - m - shift;
               }));
}

// A #pragma cannot stand in a macro's argument, so these two are separate functions.
template <class T>
static void softmax_grad_row(const T* y, const T* g, T* o, int64_t n) {
  T dot = 0;
#pragma omp simd reduction(+ : dot)
  for (int64_t i = 0; i < n; ++i) dot += y[i] * g[i];
  for (int64_t i = 0; i < n; ++i) o[i] = y[i] * (g[i] - dot);
}

template <class T>
static void log_softmax_grad_row(const T* y, const T* g, T* o, int64_t n) {
  T total = 0;
#pragma omp simd reduction(+ : total)
  for (int64_t i = 0; i < n; ++i) total += g[i];
  for (int64_t i = 0; i < n; ++i) o[i] = g[i] - vexp(y[i]) * total;
}

void softmax_grad(const Call& c) {
  if (in_columns<SoftmaxGradOfTile>(c)) return;
  RILLE_FLOATS(c.out[0].dtype, each_row<T>(c, [&](int64_t r, int64_t n) {
                 softmax_grad_row(c.in[0].ptr<T>() + r * n, c.in[1].ptr<T>() + r * n, c.out[0].ptr<T>() + r * n, n);
               }));
}

void log_softmax_grad(const Call& c) {
  if (in_columns<LogSoftmaxGradOfTile>(c)) return;
  RILLE_FLOATS(c.out[0].dtype, each_row<T>(c, [&](int64_t r, int64_t n) {
                 log_softmax_grad_row(c.in[0].ptr<T>() + r * n, c.in[1].ptr<T>() + r * n, c.out[0].ptr<T>() + r * n, n);
               }));
}

}  // namespace rille::kernels::RILLE_ISA
