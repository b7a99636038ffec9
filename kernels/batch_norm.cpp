// Batch normalization (Ioffe and Szegedy 2015) of contiguous [n, c, s], with the statistics of this batch.
//
// One thread computes a channel: it sums one plane after another in the element type, and adds the planes' sums in f64.
// Mean and variance take two passes.
#include "kernels/nest.hpp"
#include "kernels/vecmath.hpp"

namespace rille::kernels::RILLE_ISA {

template <class T>
static inline double plane_sum(const T* x, int64_t n) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += x[i];
  return double(sum);
}
template <class T>
static inline double plane_squares(const T* x, int64_t n, T mean) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += (x[i] - mean) * (x[i] - mean);
  return double(sum);
}
// The sums of g and of g (x - mean).
template <class T>
static inline void plane_gradients(const T* g, const T* x, int64_t n, T mean, double* a, double* b) {
  T sum = 0, product = 0;
#pragma omp simd reduction(+ : sum, product)
  for (int64_t i = 0; i < n; ++i) {
    sum += g[i];
    product += g[i] * (x[i] - mean);
  }
  *a += double(sum);
  *b += double(product);
}

template <class T>
static void forward(const Call& c) {
  const View& x = c.in[0];
  const int64_t batch = x.shape[0], channels = x.shape[1], s = x.shape[2];
  const double count = double(batch * s);
  for_stoppable(c, channels, batch * s * 3, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      double sum = 0, squares = 0;
      for (int64_t n = 0; n < batch; ++n) sum += plane_sum(x.ptr<T>() + (n * channels + k) * s, s);
      const T mean = T(sum / count);
      for (int64_t n = 0; n < batch; ++n) squares += plane_squares(x.ptr<T>() + (n * channels + k) * s, s, mean);
      const T var = T(squares / count), rstd = T(1) / vsqrt(var + T(c.attrs->f[0]));
      c.out[1].ptr<T>()[k] = mean;
      c.out[2].ptr<T>()[k] = var;
      const T scale = c.in[1].data ? c.in[1].ptr<T>()[k] * rstd : rstd,
              shift = c.in[2].data ? c.in[2].ptr<T>()[k] : T(0);
      for (int64_t n = 0; n < batch; ++n) {
        const T* a = x.ptr<T>() + (n * channels + k) * s;
        T* y = c.out[0].ptr<T>() + (n * channels + k) * s;
        for (int64_t i = 0; i < s; ++i) y[i] = (a[i] - mean) * scale + shift;
      }
    }
  });
}
// in: x, weight [c], bias [c] (either may be null); out: y, mean [c], variance [c] (divided by n s). attrs.f[0]: eps
void batch_norm(const Call& c) { RILLE_FLOATS(c.in[0].dtype, forward<T>(c)); }

// dx = w rstd (g - mean(g) - (x - mean) rstd^2 mean(g (x - mean)))
template <class T>
static void backward(const Call& c) {
  const View& x = c.in[1];
  const int64_t batch = x.shape[0], channels = x.shape[1], s = x.shape[2];
  const double count = double(batch * s);
  for_stoppable(c, channels, batch * s * 4, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const T mean = c.in[3].ptr<T>()[k], rstd = T(1) / vsqrt(c.in[4].ptr<T>()[k] + T(c.attrs->f[0]));
      double sum = 0, product = 0;
      for (int64_t n = 0; n < batch; ++n) {
        const int64_t at = (n * channels + k) * s;
        plane_gradients(c.in[0].ptr<T>() + at, x.ptr<T>() + at, s, mean, &sum, &product);
      }
      if (c.out[1].data) c.out[1].ptr<T>()[k] = T(product * double(rstd));
      if (c.out[2].data) c.out[2].ptr<T>()[k] = T(sum);
      const T scale = c.in[2].data ? c.in[2].ptr<T>()[k] * rstd : rstd;
      const T g_mean = T(sum / count), slope = T(product / count) * rstd * rstd;
      for (int64_t n = 0; n < batch; ++n) {
        const int64_t at = (n * channels + k) * s;
        const T *g = c.in[0].ptr<T>() + at, *a = x.ptr<T>() + at;
        T* dx = c.out[0].ptr<T>() + at;
        for (int64_t i = 0; i < s; ++i) dx[i] = scale * (g[i] - g_mean - (a[i] - mean) * slope);
      }
    }
  });
}
// in: gradient of y, x, weight (or null), mean, variance; out: gradients of x, weight, bias. attrs.f[0]: eps
void batch_norm_grad(const Call& c) { RILLE_FLOATS(c.in[1].dtype, backward<T>(c)); }

}  // namespace rille::kernels::RILLE_ISA
