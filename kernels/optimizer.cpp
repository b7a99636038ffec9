// Updates of many tensors in one call. All tensors are contiguous. attrs.i[0] is the number of parameters, n. If
// attrs.i[2] is 1, the last input is a flag (0-d f32): if the flag is not 0, the update changes nothing.
//
// The tensors are cut into pieces of 16384 elements, which are distributed over the threads. Every operation works
// element by element in the element type, except the norm: it sums f64 per piece and adds the pieces in order.
#include <math.h>

#include "kernels/half.hpp"
#include "kernels/nest.hpp"

namespace rille::kernels::RILLE_ISA {

static constexpr int64_t piece = 16384;

static int64_t pieces_of(const View* views, int64_t n) {
  int64_t total = 0;
  for (int64_t i = 0; i < n; ++i) total += (views[i].count() + piece - 1) / piece;
  return total;
}

// Calls f(tensor, first element, number of elements, piece number) for each piece.
template <class F>
static void for_pieces(const View* views, int64_t n, const F& f) {
  for_share(pieces_of(views, n), piece, [&](int64_t begin, int64_t end) {
    int64_t number = 0;
    for (int64_t i = 0; i < n && number < end; ++i) {
      const int64_t count = views[i].count(), pieces = (count + piece - 1) / piece;
      for (int64_t k = begin > number ? begin - number : 0; k < pieces && number + k < end; ++k)
        f(i, k * piece, count - k * piece < piece ? count - k * piece : piece, number + k);
      number += pieces;
    }
  });
}

// Whether there is a flag input and it is set.
static bool skipped(const Call& c) { return c.attrs->i[2] == 1 && *c.in[c.n_in - 1].ptr<float>() != 0; }

// adds 1 to each element of out[0], i64
void increment(const Call& c) {
  if (skipped(c)) return;
  for (int64_t i = 0; i < c.out[0].count(); ++i) ++c.out[0].ptr<int64_t>()[i];
}

// Calls f(gradient elements, index of the first, count). f16 and bf16 are widened in pieces that stay in the cache.
template <class T, class F>
static void with_gradient(const View& g, int64_t first, int64_t count, const F& f) {
  if (!is_half(g.dtype)) return f(g.ptr<T>() + first, first, count);
  if constexpr (sizeof(T) == sizeof(float)) {
    static constexpr int64_t at_once = 512;
    float wide[at_once];
    for (int64_t i = first; i < first + count; i += at_once) {
      const int64_t m = first + count - i < at_once ? first + count - i : at_once;
      widen_row(g.dtype, g.ptr<uint16_t>() + i, 1, wide, m);
      f(wide, i, m);
    }
  }
}

template <class T>
static void adamw_as(const Call& c) {
  if (skipped(c)) return;
  const int64_t n = c.attrs->i[0], *steps = c.in[0].ptr<int64_t>();
  const double b1 = c.attrs->f[0], b2 = c.attrs->f[1], lr = double(*c.in[1].ptr<T>());
  const T beta1 = T(b1), beta2 = T(b2), rest1 = T(1 - b1), rest2 = T(1 - b2), eps = T(c.attrs->f[2]);
  const bool decoupled = c.attrs->i[1] == 0;
  const T keep = T(decoupled ? 1 - lr * c.attrs->f[3] : 1), l2 = T(decoupled ? 0 : c.attrs->f[3]);
  struct Correction {
    T rate, root;
  };
  const auto of_step = [&](int64_t step) {
    return Correction{T(lr / (1 - ::pow(b1, double(step)))), T(1 / ::sqrt(1 - ::pow(b2, double(step))))};
  };
  bool same = true;  // false if parameters have different step counts, because some were added later
  for (int64_t i = 1; same && i < n; ++i) same = steps[i] == steps[0];
  const Correction first_one = of_step(steps[0]);
  const View *gs = c.in + 2, *ps = c.out, *ms = c.out + n, *vs = c.out + 2 * n;
  for_pieces(ps, n, [&](int64_t i, int64_t begin, int64_t length, int64_t) {
    const Correction correction = same ? first_one : of_step(steps[i]);
    const T rate = correction.rate, root = correction.root;
    with_gradient<T>(gs[i], begin, length, [&](const T* __restrict g, int64_t first, int64_t count) {
      T* __restrict p = ps[i].ptr<T>() + first;
      T* __restrict m = ms[i].ptr<T>() + first;
      T* __restrict v = vs[i].ptr<T>() + first;
#pragma omp simd
      for (int64_t j = 0; j < count; ++j) {
        const T gj = g[j] + l2 * p[j], mj = beta1 * m[j] + rest1 * gj, vj = beta2 * v[j] + rest2 * gj * gj;
        m[j] = mj;
        v[j] = vj;
        p[j] = p[j] * keep - rate * mj / (vsqrt(vj) * root + eps);
      }
    });
  });
}

template <class T>
static void sgd_as(const Call& c) {
  if (skipped(c)) return;
  const int64_t n = c.attrs->i[0];
  const bool decoupled = c.attrs->i[3] == 1;
  const double rate = double(*c.in[0].ptr<T>());
  const T lr = T(rate), momentum = T(c.attrs->f[0]), decay = T(decoupled ? 0 : c.attrs->f[1]);
  const T keep = T(decoupled ? 1 - rate * c.attrs->f[1] : 1);
  const bool nesterov = c.attrs->i[1] == 1;
  for_pieces(c.out, n, [&](int64_t i, int64_t first, int64_t count, int64_t) {
    const T* __restrict g = c.in[1 + i].ptr<T>() + first;
    T* __restrict p = c.out[i].ptr<T>() + first;
    if (momentum == T(0)) {
      for (int64_t j = 0; j < count; ++j) p[j] = p[j] * keep - lr * (g[j] + decay * p[j]);
      return;
    }
    T* __restrict m = c.out[n + i].ptr<T>() + first;
    for (int64_t j = 0; j < count; ++j) {
      const T d = g[j] + decay * p[j], mj = momentum * m[j] + d;
      m[j] = mj;
      p[j] = p[j] * keep - lr * (nesterov ? d + momentum * mj : mj);
    }
  });
}

template <class T>
static void lion_as(const Call& c) {
  if (skipped(c)) return;
  const int64_t n = c.attrs->i[0];
  const double lr = double(*c.in[0].ptr<T>()), b1 = c.attrs->f[0], b2 = c.attrs->f[1];
  const T beta1 = T(b1), beta2 = T(b2), rest1 = T(1 - b1), rest2 = T(1 - b2);
  const T rate = T(lr), keep = T(1 - lr * c.attrs->f[2]);
  for_pieces(c.out, n, [&](int64_t i, int64_t first, int64_t count, int64_t) {
    const T* __restrict g = c.in[1 + i].ptr<T>() + first;
    T* __restrict p = c.out[i].ptr<T>() + first;
    T* __restrict m = c.out[n + i].ptr<T>() + first;
#pragma omp simd
    for (int64_t j = 0; j < count; ++j) {
      const T u = beta1 * m[j] + rest1 * g[j];
      p[j] = p[j] * keep - (u > T(0) ? rate : u < T(0) ? -rate : T(0));
      m[j] = beta2 * m[j] + rest2 * g[j];
    }
  });
}

template <class T>
static void average_as(const Call& c) {
  if (skipped(c)) return;
  const double steps = double(c.in[0].data ? *c.in[0].ptr<int64_t>() : 0), young = (1 + steps) / (10 + steps);
  const double weight = c.in[0].data && young < c.attrs->f[0] ? young : c.attrs->f[0];
  const T keep = T(weight), rest = T(1 - weight);
  for_pieces(c.out, c.n_out, [&](int64_t i, int64_t first, int64_t count, int64_t) {
    const T* __restrict x = c.in[1 + i].ptr<T>() + first;
    T* __restrict y = c.out[i].ptr<T>() + first;
#pragma omp simd
    for (int64_t j = 0; j < count; ++j) y[j] = keep * y[j] + rest * x[j];
  });
}

// in: steps (i64 [n]), lr (0-d), g[n]; out, in place: p[n], m[n], v[n]. attrs.f: beta1, beta2, eps, weight decay;
// i[1]: 1 adds the decay to the gradient (Adam), 0 subtracts it from the parameter (AdamW). If the parameters are f32,
// each gradient may be f16 or bf16.
void adamw(const Call& c) { RILLE_FLOATS(c.out[0].dtype, adamw_as<T>(c)); }
// in: lr (0-d), g[n]; out, in place: p[n], then momentum[n] if attrs.f[0] (momentum) != 0. attrs.f: momentum, decay;
// i[1]: nesterov; i[3]: 1 subtracts the decay from the parameter, 0 adds it to the gradient
void sgd(const Call& c) { RILLE_FLOATS(c.out[0].dtype, sgd_as<T>(c)); }
// in: lr (0-d), g[n]; out, in place: p[n], m[n]. attrs.f: beta1, beta2, weight decay
void lion(const Call& c) { RILLE_FLOATS(c.out[0].dtype, lion_as<T>(c)); }
// y = d y + (1 - d) x. in: steps (0-d i64, or omitted), x[n]; out, in place: y[n]. attrs.f: d; with steps, d is at
// most (1 + steps) / (10 + steps)
void average(const Call& c) { RILLE_FLOATS(c.out[0].dtype, average_as<T>(c)); }

// x - x is 0 for a finite x, else NaN, so the sum of all x - x tells whether every x is finite.
template <class T>
static void grad_unscale_as(const Call& c, double* odd) {
  const T factor = T(1 / double(*c.in[0].ptr<float>()));
  for_pieces(c.out + 1, c.n_out - 1, [&](int64_t i, int64_t first, int64_t count, int64_t number) {
    T* g = c.out[1 + i].ptr<T>() + first;
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < count; ++j) {
      sum += g[j] - g[j];
      g[j] *= factor;
    }
    odd[number] = double(sum);
  });
}

// in: scale (0-d f32); out, in place: flag (0-d f32: 1 if an element of any g is not finite, else 0), g[..] /= scale
void grad_unscale(const Call& c) {
  const int64_t pieces = pieces_of(c.out + 1, c.n_out - 1);
  double* odd = static_cast<double*>(c.lane->scratch(size_t(pieces + 1) * sizeof(double)));
  if (!odd)
    return c.fail("grad_unscale: no memory for %lld flags\nwork on smaller tensors or batches, or free tensors",
                  (long long)pieces);
  if (c.n_out > 1) RILLE_FLOATS(c.out[1].dtype, grad_unscale_as<T>(c, odd));
  double sum = 0;
  for (int64_t k = 0; k < pieces; ++k) sum += odd[k];
  *c.out[0].ptr<float>() = sum == 0 ? 0.0f : 1.0f;
}

// in: flag; out, in place: scale (0-d f32), good steps (0-d i64). Flag set: scale *= attrs.f[1], good = 0. Flag not
// set: good += 1; when good reaches attrs.i[0], scale *= attrs.f[0] and good = 0
void loss_scale(const Call& c) {
  float& scale = *c.out[0].ptr<float>();
  int64_t& good = *c.out[1].ptr<int64_t>();
  if (*c.in[0].ptr<float>() != 0) {
    scale = float(scale * c.attrs->f[1]);
    good = 0;
  } else if (++good >= c.attrs->i[0]) {
    const float grown = float(scale * c.attrs->f[0]);
    if (::isfinite(grown)) scale = grown;
    good = 0;
  }
}

template <class T>
static void grad_norm_as(const Call& c, double* partial, int64_t pieces) {
  for_pieces(c.in, c.n_in, [&](int64_t i, int64_t first, int64_t count, int64_t number) {
    const T* g = c.in[i].ptr<T>() + first;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < count; ++j) sum += double(g[j]) * double(g[j]);
    partial[number] = sum;
  });
  double total = 0;
  for (int64_t k = 0; k < pieces; ++k) total += partial[k];
  *c.out[0].ptr<T>() = T(::sqrt(total));
}

// in: g[n]; out: the 2-norm of all their elements, 0-d
void grad_norm(const Call& c) {
  const int64_t pieces = pieces_of(c.in, c.n_in);
  double* partial = static_cast<double*>(c.lane->scratch(size_t(pieces + 1) * sizeof(double)));
  if (!partial)
    return c.fail(
        "clip_grad_norm: no memory for %lld partial sums\nwork on smaller tensors or batches, or free tensors",
        (long long)pieces);
  RILLE_FLOATS(c.out[0].dtype, grad_norm_as<T>(c, partial, pieces));
}

// in: norm; out, in place: g[n] *= min(1, attrs.f[0] / (norm + 1e-6))
void grad_clip(const Call& c) {
  RILLE_FLOATS(c.out[0].dtype, {
    const double wanted = c.attrs->f[0] / (double(*c.in[0].ptr<T>()) + 1e-6);
    if (wanted >= 1) return;
    const T factor = T(wanted);
    for_pieces(c.out, c.n_out, [&](int64_t i, int64_t first, int64_t count, int64_t) {
      T* g = c.out[i].ptr<T>() + first;
      for (int64_t j = 0; j < count; ++j) g[j] *= factor;
    });
  });
}

}  // namespace rille::kernels::RILLE_ISA
