// One channel on one thread: its planes are summed one after another, in blocks of the element type (half types: f32),
// together in f64. Mean and variance in two passes.
#include "kernels/batch_norm.hpp"

#include "kernels/element.hpp"
#include "kernels/nest.hpp"
#include "kernels/sums.hpp"
#include "kernels/vecmath.hpp"

namespace rille::kernels::RILLE_ISA {

template <class S> static void forward(const Call& c) {
  using T = Computed<S>;
  const View& x = c.in[0];
  const int64_t batch = x.shape[0], channels = x.shape[1], s = x.shape[2];
  const double count = double(batch * s);
  for_share(channels, batch * s * 3, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const S* const first = x.ptr<S>() + k * s;
      double sum = 0, squares = 0;
      for (int64_t n = 0; n < batch; ++n) {
        const S* a = first + n * channels * s;
        sum += long_sum_of<T>(s, [=](int64_t i) { return widen(a[i]); });
      }
      const T mean = T(sum / count);
      for (int64_t n = 0; n < batch; ++n) {
        const S* a = first + n * channels * s;
        squares += long_sum_of<T>(s, [=](int64_t i) { return (widen(a[i]) - mean) * (widen(a[i]) - mean); });
      }
      const T var = T(squares / count), rstd = T(1) / vsqrt(var + T(c.attrs->f[0]));
      c.out[1].ptr<T>()[k] = mean;
      c.out[2].ptr<T>()[k] = var;
      const T scale = element_of(c.in[1], k, T(1)) * rstd, shift = element_of(c.in[2], k, T(0));
      for (int64_t n = 0; n < batch; ++n) {
        const S* a = first + n * channels * s;
        S* y = c.out[0].ptr<S>() + (n * channels + k) * s;
#pragma omp simd
        for (int64_t i = 0; i < s; ++i) y[i] = narrow<S>((widen(a[i]) - mean) * scale + shift);
      }
    }
  });
}
void batch_norm(const Call& c) { RILLE_REALS(c.in[0].dtype, forward<S>(c)); }

// dx = w rstd (g - mean(g) - (x - mean) rstd^2 mean(g (x - mean)))
template <class S> static void backward(const Call& c) {
  using T = Computed<S>;
  const View& x = c.in[1];
  const int64_t batch = x.shape[0], channels = x.shape[1], s = x.shape[2];
  const double count = double(batch * s);
  for_share(channels, batch * s * 4, [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const T mean = c.in[3].ptr<T>()[k], rstd = T(1) / vsqrt(c.in[4].ptr<T>()[k] + T(c.attrs->f[0]));
      double sum = 0, product = 0;
      for (int64_t n = 0; n < batch; ++n) {
        const S *g = c.in[0].ptr<S>() + (n * channels + k) * s, *a = x.ptr<S>() + (n * channels + k) * s;
        add_sums_of<T>(s, [=](int64_t i) { return widen(g[i]); },
                       [=](int64_t i) { return widen(g[i]) * (widen(a[i]) - mean); }, &sum, &product);
      }
      if (c.out[1].data) put_element(c.out[1], k, product * double(rstd));
      if (c.out[2].data) put_element(c.out[2], k, sum);
      const T scale = element_of(c.in[2], k, T(1)) * rstd;
      const T g_mean = T(sum / count), slope = T(product / count) * rstd * rstd;
      for (int64_t n = 0; n < batch; ++n) {
        const S *g = c.in[0].ptr<S>() + (n * channels + k) * s, *a = x.ptr<S>() + (n * channels + k) * s;
        S* dx = c.out[0].ptr<S>() + (n * channels + k) * s;
#pragma omp simd
        for (int64_t i = 0; i < s; ++i)
          dx[i] = narrow<S>(scale * (widen(g[i]) - g_mean - (widen(a[i]) - mean) * slope));
      }
    }
  });
}
void batch_norm_grad(const Call& c) { RILLE_REALS(c.in[1].dtype, backward<S>(c)); }

}  // namespace rille::kernels::RILLE_ISA
