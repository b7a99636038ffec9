// Layer normalization (Ba et al. 2016) over the last dimension of contiguous rows.
//
// One thread computes a row. Mean and variance take two passes, in the element type. The gradients of weight and bias
// are summed over blocks of rows, then over the blocks in order. The blocks depend on the number of rows only, so the
// bits do not depend on the number of threads.
#include "kernels/nest.hpp"
#include "kernels/vecmath.hpp"

namespace rille::kernels::RILLE_ISA {

template <class T>
static void forward_row(const T* x, const T* w, const T* b, T* y, int64_t n, T eps, T* mean, T* rstd) {
  T sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  const T m = sum / T(n);
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < n; ++i) squares += (x[i] - m) * (x[i] - m);
  const T s = T(1) / vsqrt(squares / T(n) + eps);
  if (w && b) {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - m) * s * w[i] + b[i];
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - m) * s * (w ? w[i] : T(1)) + (b ? b[i] : T(0));
  }
  *mean = m;
  *rstd = s;
}

// in: x [rows, c], weight [c], bias [c] (either may be null); out: y, mean [rows], rstd = 1 / deviation. attrs.f[0]:
// eps
void layer_norm(const Call& c) {
  const View& x = c.in[0];
  const int64_t n = x.shape[x.shape.n - 1], rows = n ? x.count() / n : 0;
  RILLE_FLOATS(x.dtype, for_stoppable(c, rows, n * 4, [&](int64_t begin, int64_t end) {
                 for (int64_t r = begin; r < end; ++r) {
                   forward_row(x.ptr<T>() + r * n, c.in[1].ptr<T>(), c.in[2].ptr<T>(), c.out[0].ptr<T>() + r * n, n,
                               T(c.attrs->f[0]), c.out[1].ptr<T>() + r, c.out[2].ptr<T>() + r);
                 }
               }));
}

// dx = rstd (gw - mean(gw) - xhat mean(gw xhat)), gw = g w; adds g xhat to dw and g to db.
template <class T>
static void backward_row(const T* __restrict g, const T* __restrict x, const T* __restrict w, T* __restrict dx,
                         T* __restrict dw, T* __restrict db, int64_t n, T mean, T rstd) {
  T a = 0, b = 0;
#pragma omp simd reduction(+ : a, b)
  for (int64_t i = 0; i < n; ++i) {
    const T gw = w ? g[i] * w[i] : g[i], xhat = (x[i] - mean) * rstd;
    a += gw;
    b += gw * xhat;
    dw[i] += g[i] * xhat;
    db[i] += g[i];
  }
  a /= T(n);
  b /= T(n);
  for (int64_t i = 0; i < n; ++i) {
    const T gw = w ? g[i] * w[i] : g[i], xhat = (x[i] - mean) * rstd;
    dx[i] = rstd * (gw - a - xhat * b);
  }
}

template <class T>
static void backward(const Call& c) {
  const View& x = c.in[1];
  const int64_t n = x.shape[x.shape.n - 1], rows = n ? x.count() / n : 0;
  const int64_t per_block = rows / 64 < 32 ? 32 : (rows + 63) / 64, blocks = (rows + per_block - 1) / per_block;
  T* partial = static_cast<T*>(c.lane->scratch(size_t(blocks * 2 * n) * sizeof(T)));
  if (!partial && blocks)
    return c.fail("layer_norm: no memory for %lld partial sums\nwork on smaller tensors or batches, or free tensors",
                  (long long)blocks);
  for_stoppable(c, blocks, per_block * n, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      T *dw = partial + k * 2 * n, *db = dw + n;
      for (int64_t i = 0; i < 2 * n; ++i) dw[i] = 0;
      for (int64_t r = k * per_block; r < rows && r < (k + 1) * per_block; ++r) {
        backward_row(c.in[0].ptr<T>() + r * n, x.ptr<T>() + r * n, c.in[2].ptr<T>(), c.out[0].ptr<T>() + r * n, dw, db,
                     n, c.in[3].ptr<T>()[r], c.in[4].ptr<T>()[r]);
      }
    }
  });
  for (int part = 0; part < 2; ++part) {
    T* out = c.out[1 + part].ptr<T>();
    if (!out) continue;
    for (int64_t i = 0; i < n; ++i) out[i] = 0;
    for (int64_t k = 0; k < blocks; ++k)
      for (int64_t i = 0; i < n; ++i) out[i] += partial[(k * 2 + part) * n + i];
  }
}

// in: gradient of y, x, weight (or null), mean, rstd; out: gradients of x, weight, bias (the last two may be null)
void layer_norm_grad(const Call& c) { RILLE_FLOATS(c.in[1].dtype, backward<T>(c)); }

}  // namespace rille::kernels::RILLE_ISA
