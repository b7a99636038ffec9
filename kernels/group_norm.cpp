// One group on one thread. Its statistics are put together from blocks that stay in the first cache, so x is read twice
// in all. The gradients of weight and bias are sums of each plane's, made by the group's thread, over the batch in
// order.
#include "kernels/group_norm.hpp"

#include "kernels/element.hpp"
#include "kernels/nest.hpp"
#include "kernels/sums.hpp"
#include "kernels/vecmath.hpp"

namespace rille::kernels::RILLE_ISA {

struct Groups {
  int64_t batch, channels, s, groups, each;          // each: channels of a group
  Groups(const View& x, const Attrs& attrs)
      : batch(x.shape[0]), channels(x.shape[1]), s(x.shape[2]), groups(attrs.i[0]), each(channels / groups) {}
  int64_t count() const { return each * s; }
};

template <class S>
static Moments moments_of_group(const S* x, int64_t n) {
  Computed<S> buffer[sum_block];
  Moments total;
  for (int64_t i = 0; i < n; i += sum_block) {
    const int64_t m = n - i < sum_block ? n - i : sum_block;
    total.join(moments_of(computed(x + i, 1, m, buffer), m));
  }
  return total;
}

template <class S>
static void forward(const Call& c) {
  using T = Computed<S>;
  const Groups z(c.in[0], *c.attrs);
  for_share(z.batch * z.groups, z.count() * 3, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const S* x = c.in[0].ptr<S>() + r * z.count();
      S* y = c.out[0].ptr<S>() + r * z.count();
      const Moments m = moments_of_group(x, z.count());
      const T mean = T(m.mean), rstd = T(1) / vsqrt(T(m.squares / m.n) + T(c.attrs->f[0]));
      c.out[1].ptr<T>()[r] = mean;
      c.out[2].ptr<T>()[r] = rstd;
      for (int64_t k = 0; k < z.each; ++k) {
        const int64_t channel = r % z.groups * z.each + k;
        const T scale = element_of(c.in[1], channel, T(1)) * rstd, shift = element_of(c.in[2], channel, T(0));
        const S* a = x + k * z.s;
        S* o = y + k * z.s;
#pragma omp simd
        for (int64_t i = 0; i < z.s; ++i) o[i] = narrow<S>((widen(a[i]) - mean) * scale + shift);
      }
    }
  });
}
void group_norm(const Call& c) { RILLE_REALS(c.in[0].dtype, forward<S>(c)); }

// Of each plane: the sum of g, and of g (x - mean).
struct PlaneSums { double g = 0, product = 0; };

// dx = rstd (w g - mean(w g) - (x - mean) rstd^2 mean(w g (x - mean))), the means over the group.
template <class S>
static void backward_group(const Call& c, const Groups& z, int64_t r, PlaneSums* sums) {
  using T = Computed<S>;
  const S *g = c.in[0].ptr<S>() + r * z.count(), *x = c.in[1].ptr<S>() + r * z.count();
  S* dx = c.out[0].ptr<S>() + r * z.count();
  const T mean = c.in[3].ptr<T>()[r], rstd = c.in[4].ptr<T>()[r];
  double sum = 0, product = 0;
  for (int64_t k = 0; k < z.each; ++k) {
    const S *b = g + k * z.s, *a = x + k * z.s;
    sums[k] = {};
    add_sums_of<T>(z.s, [=](int64_t i) { return widen(b[i]); },
                   [=](int64_t i) { return widen(b[i]) * (widen(a[i]) - mean); }, &sums[k].g, &sums[k].product);
    const double w = element_of(c.in[2], r % z.groups * z.each + k, 1.0);
    sum += w * sums[k].g;
    product += w * sums[k].product;
  }
  const T away = T(sum / double(z.count())) * rstd, slope = T(product / double(z.count())) * rstd * rstd * rstd;
  for (int64_t k = 0; k < z.each; ++k) {
    const S *b = g + k * z.s, *a = x + k * z.s;
    S* o = dx + k * z.s;
    const T scale = element_of(c.in[2], r % z.groups * z.each + k, T(1)) * rstd;
#pragma omp simd
    for (int64_t i = 0; i < z.s; ++i)
      o[i] = narrow<S>(scale * widen(b[i]) - away - (widen(a[i]) - mean) * slope);
  }
}

template <class S>
static void backward(const Call& c) {
  using T = Computed<S>;
  const Groups z(c.in[1], *c.attrs);
  PlaneSums* sums = static_cast<PlaneSums*>(c.lane->scratch(size_t(z.batch * z.channels) * sizeof(PlaneSums)));
  if (!sums) return c.fail("group_norm: no memory for the sums of %lld planes", (long long)(z.batch * z.channels));
  for_share(z.batch * z.groups, z.count() * 4, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) backward_group<S>(c, z, r, sums + r * z.each);
  });
  if (!c.out[1].data && !c.out[2].data) return;
  for (int64_t k = 0; k < z.channels; ++k) {
    double dw = 0, db = 0;
    for (int64_t n = 0; n < z.batch; ++n) {
      const PlaneSums& plane = sums[n * z.channels + k];
      dw += plane.product * double(c.in[4].ptr<T>()[n * z.groups + k / z.each]);
      db += plane.g;
    }
    if (c.out[1].data) put_element(c.out[1], k, dw);
    if (c.out[2].data) put_element(c.out[2], k, db);
  }
}
void group_norm_grad(const Call& c) { RILLE_REALS(c.in[1].dtype, backward<S>(c)); }

}  // namespace rille::kernels::RILLE_ISA
