// One row on one thread. Mean and variance in two passes, in the element type (half types: f32). The gradients of
// weight and bias are summed over blocks of rows, then over the blocks in order; the blocks depend only on the number
// of rows, so neither do the bits depend on the number of threads.
#include "kernels/layer_norm.hpp"

#include "kernels/element.hpp"
#include "kernels/nest.hpp"
#include "kernels/sums.hpp"
#include "kernels/vecmath.hpp"

namespace rille::kernels::RILLE_ISA {

// A weight or bias as one computes with it: where it lies, or in `room`.
template <class T> static const T* vector_of(const View& v, T* room) {
  if (!v.data || size_bytes(v.dtype) == sizeof(T)) return v.ptr<T>();
  for (int64_t i = 0; i < v.count(); ++i) room[i] = element_of(v, i, T(0));
  return room;
}

template <class S, class T>
static void forward_row(const S* x, const T* w, const T* b, S* y, int64_t n, T eps, T* mean, T* rstd) {
  const T m = T(long_sum_of<T>(n, [=](int64_t i) { return widen(x[i]); }) / double(n));
  const double squares = long_sum_of<T>(n, [=](int64_t i) { return (widen(x[i]) - m) * (widen(x[i]) - m); });
  const T s = T(1) / vsqrt(T(squares / double(n)) + eps);
  if (w && b) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = narrow<S>((widen(x[i]) - m) * s * w[i] + b[i]);
  } else if (!w && !b) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) y[i] = narrow<S>((widen(x[i]) - m) * s);
  } else {
    for (int64_t i = 0; i < n; ++i)
      y[i] = narrow<S>((widen(x[i]) - m) * s * (w ? w[i] : T(1)) + (b ? b[i] : T(0)));
  }
  *mean = m;
  *rstd = s;
}

template <class S>
static void forward(const Call& c) {
  using T = Computed<S>;
  const View& x = c.in[0];
  const int64_t n = x.shape[x.shape.n - 1], rows = n ? x.count() / n : 0;
  T* room = static_cast<T*>(c.lane->scratch(size_t(2 * n) * sizeof(T)));
  if (!room && n) return c.fail("layer_norm: no memory for %lld weights", (long long)n);
  const T *w = vector_of(c.in[1], room), *b = vector_of(c.in[2], room + n);
  for_share(rows, n * 4, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      forward_row(x.ptr<S>() + r * n, w, b, c.out[0].ptr<S>() + r * n, n, T(c.attrs->f[0]), c.out[1].ptr<T>() + r,
                  c.out[2].ptr<T>() + r);
    }
  });
}
void layer_norm(const Call& c) { RILLE_REALS(c.in[0].dtype, forward<S>(c)); }

// dx = rstd (gw - mean(gw) - xhat mean(gw xhat)), gw = g w; adds g xhat to dw and g to db.
template <class S, class T>
static void backward_row(const S* __restrict g, const S* __restrict x, const T* __restrict w, S* __restrict dx,
                         T* __restrict dw, T* __restrict db, int64_t n, T mean, T rstd) {
  T a = 0, b = 0;
#pragma omp simd reduction(+ : a, b)
  for (int64_t i = 0; i < n; ++i) {
    const T u = widen(g[i]), gw = w ? u * w[i] : u, xhat = (widen(x[i]) - mean) * rstd;
    a += gw;
    b += gw * xhat;
    dw[i] += u * xhat;
    db[i] += u;
  }
  a /= T(n);
  b /= T(n);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const T u = widen(g[i]), gw = w ? u * w[i] : u, xhat = (widen(x[i]) - mean) * rstd;
    dx[i] = narrow<S>(rstd * (gw - a - xhat * b));
  }
}

template <class S>
static void backward(const Call& c) {
  using T = Computed<S>;
  const View& x = c.in[1];
  const int64_t n = x.shape[x.shape.n - 1], rows = n ? x.count() / n : 0;
  const int64_t per_block = rows / 64 < 32 ? 32 : (rows + 63) / 64, blocks = (rows + per_block - 1) / per_block;
  T* partial = static_cast<T*>(c.lane->scratch(size_t((blocks * 2 + 1) * n) * sizeof(T)));
  if (!partial && n) return c.fail("layer_norm: no memory for %lld partial sums", (long long)blocks);
  const T* w = vector_of(c.in[2], partial + blocks * 2 * n);
  for_share(blocks, per_block * n, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      T *dw = partial + k * 2 * n, *db = dw + n;
      for (int64_t i = 0; i < 2 * n; ++i) dw[i] = 0;
      for (int64_t r = k * per_block; r < rows && r < (k + 1) * per_block; ++r) {
        backward_row(c.in[0].ptr<S>() + r * n, x.ptr<S>() + r * n, w, c.out[0].ptr<S>() + r * n, dw, db, n,
                     c.in[3].ptr<T>()[r], c.in[4].ptr<T>()[r]);
      }
    }
  });
  for (int part = 0; part < 2; ++part) {
    if (!c.out[1 + part].data) continue;
    T* total = partial + part * n;                   // the first block's
    for (int64_t k = 1; k < blocks; ++k)
      for (int64_t i = 0; i < n; ++i) total[i] += partial[(k * 2 + part) * n + i];
    for (int64_t i = 0; i < n; ++i) put_element(c.out[1 + part], i, blocks ? double(total[i]) : 0.0);
  }
}
void layer_norm_grad(const Call& c) { RILLE_REALS(c.in[1].dtype, backward<S>(c)); }

}  // namespace rille::kernels::RILLE_ISA
