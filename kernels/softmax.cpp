// The row's maximum is subtracted first, so nothing overflows; sums run in the element type, one row on one thread.
#include "kernels/softmax.hpp"

#include "kernels/nest.hpp"
#include "kernels/rows.hpp"

namespace rille::kernels::RILLE_ISA {

template <class T, class F>
static void each_row(const Call& c, const F& f) {
  const View& v = c.out[0];
  const int64_t n = v.shape[v.shape.n - 1], rows = n ? v.count() / n : 0;
  for_share(rows, n * 4, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) f(r, n);
  });
}

void softmax(const Call& c) {
  RILLE_FLOATS(c.out[0].dtype, each_row<T>(c, [&](int64_t r, int64_t n) {
    T* y = c.out[0].ptr<T>() + r * n;
    const T scale = T(1) / row_exp(c.in[0].ptr<T>() + r * n, y, n, row_max(c.in[0].ptr<T>() + r * n, n));
    for (int64_t i = 0; i < n; ++i) y[i] *= scale;
  }));
}

void log_softmax(const Call& c) {
  RILLE_FLOATS(c.out[0].dtype, each_row<T>(c, [&](int64_t r, int64_t n) {
    const T* x = c.in[0].ptr<T>() + r * n;
    T* y = c.out[0].ptr<T>() + r * n;
    const T m = row_max(x, n), shift = m + vlog(row_exp_sum(x, n, m));
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] - shift;
  }));
}

// A directive may not stand in a macro's argument, so these two are functions of their own.
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
  RILLE_FLOATS(c.out[0].dtype, each_row<T>(c, [&](int64_t r, int64_t n) {
    softmax_grad_row(c.in[0].ptr<T>() + r * n, c.in[1].ptr<T>() + r * n, c.out[0].ptr<T>() + r * n, n);
  }));
}

void log_softmax_grad(const Call& c) {
  RILLE_FLOATS(c.out[0].dtype, each_row<T>(c, [&](int64_t r, int64_t n) {
    log_softmax_grad_row(c.in[0].ptr<T>() + r * n, c.in[1].ptr<T>() + r * n, c.out[0].ptr<T>() + r * n, n);
  }));
}

}  // namespace rille::kernels::RILLE_ISA
