// Root-mean-square normalization (Zhang and Sennrich 2019) over the last dimension of contiguous rows.
//
// One thread computes a row. The weight's gradient is summed over blocks of rows, then over the blocks in order. The
// blocks depend on the number of rows only, so the bits do not depend on the number of threads.
#include "kernels/nest.hpp"
#include "kernels/vecmath.hpp"

namespace rille::kernels::RILLE_ISA {

template <class T>
static T forward_row(const T* x, const T* w, T* y, int64_t n, T eps) {
  T squares = 0;
#pragma omp simd reduction(+ : squares)
  for (int64_t i = 0; i < n; ++i) squares += x[i] * x[i];
  const T r = T(1) / vsqrt(squares / T(n) + eps);
  if (w)
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * r * w[i];
  else
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * r;
  return r;
}

// in: x [rows, c], weight [c] or null; out: y, r = 1 / root mean square [rows]. attrs.f[0]: eps
void rms_norm(const Call& c) {
  const View& x = c.in[0];
  const int64_t n = x.shape[x.shape.n - 1], rows = n ? x.count() / n : 0;
  RILLE_FLOATS(x.dtype, for_stoppable(c, rows, n * 4, [&](int64_t begin, int64_t end) {
                 for (int64_t r = begin; r < end; ++r)
                   c.out[1].ptr<T>()[r] = forward_row(x.ptr<T>() + r * n, c.in[1].ptr<T>(), c.out[0].ptr<T>() + r * n,
                                                      n, T(c.attrs->f[0]));
               }));
}

// dx = r (gw - x r^2 mean(gw x)), gw = g w; adds g x r to dw.
template <class T>
static void backward_row(const T* __restrict g, const T* __restrict x, const T* __restrict w, T* __restrict dx,
                         T* __restrict dw, int64_t n, T r) {
  T dot = 0;
#pragma omp simd reduction(+ : dot)
  for (int64_t i = 0; i < n; ++i) {
    dot += (w ? g[i] * w[i] : g[i]) * x[i];
    dw[i] += g[i] * x[i] * r;
  }
  const T slope = dot / T(n) * r * r;
  for (int64_t i = 0; i < n; ++i) dx[i] = r * ((w ? g[i] * w[i] : g[i]) - x[i] * slope);
}

template <class T>
static void backward(const Call& c) {
  const View& x = c.in[1];
  const int64_t n = x.shape[x.shape.n - 1], rows = n ? x.count() / n : 0;
  const int64_t per_block = rows / 64 < 32 ? 32 : (rows + 63) / 64, blocks = (rows + per_block - 1) / per_block;
  T* partial = static_cast<T*>(c.lane->scratch(size_t(blocks * n) * sizeof(T)));
  if (!partial && blocks * n > 0)
    return c.fail("rms_norm: no memory for %lld partial sums\nwork on smaller tensors or batches, or free tensors",
                  (long long)blocks);
  for_stoppable(c, blocks, per_block * n, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      T* dw = partial + k * n;
      for (int64_t i = 0; i < n; ++i) dw[i] = 0;
      for (int64_t r = k * per_block; r < rows && r < (k + 1) * per_block; ++r)
        backward_row(c.in[0].ptr<T>() + r * n, x.ptr<T>() + r * n, c.in[2].ptr<T>(), c.out[0].ptr<T>() + r * n, dw, n,
                     c.in[3].ptr<T>()[r]);
    }
  });
  T* out = c.out[1].ptr<T>();
  if (!out) return;
  for (int64_t i = 0; i < n; ++i) out[i] = 0;
  for (int64_t k = 0; k < blocks; ++k)
    for (int64_t i = 0; i < n; ++i) out[i] += partial[k * n + i];
}

// in: gradient of y, x, weight (or null), r; out: gradients of x, weight (or null)
void rms_norm_grad(const Call& c) { RILLE_FLOATS(c.in[1].dtype, backward<T>(c)); }

}  // namespace rille::kernels::RILLE_ISA
