// Element-wise kernels. Each operation is a functor; the loops around it are written once, for contiguous
// rows, for a row with one broadcast operand, and for any strides. No accumulation; f32 is computed in f32.
#include "kernels/elementwise.hpp"

#include "kernels/nest.hpp"
#include "kernels/vecmath.hpp"

namespace rille::kernels::RILLE_ISA {

// R is the result's type, T the operands'.
template <class T, class R, class F>
static void binary_row(const F& f, const T* a, int64_t sa, const T* b, int64_t sb, R* o, int64_t so, int64_t n) {
  if (so == 1 && sa == 1 && sb == 1) {
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) o[i] = f(a[i], b[i]);
  } else if (so == 1 && sa == 1 && sb == 0) {
    const T y = *b;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) o[i] = f(a[i], y);
  } else if (so == 1 && sa == 0 && sb == 1) {
    const T x = *a;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) o[i] = f(x, b[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) o[i * so] = f(a[i * sa], b[i * sb]);
  }
}

template <class T, class R, class F>
static void binary(const Call& c, const F& f) {
  T number = T(c.attrs->f[0]);
  View scalar = c.in[0];
  for (int d = 0; d < scalar.strides.n; ++d) scalar.strides[d] = 0;
  scalar.data = &number;
  const bool left = c.n_in == 1 && c.attrs->i[0] == 1;
  const View &a = left ? scalar : c.in[0], &b = c.n_in == 2 ? c.in[1] : left ? c.in[0] : scalar, &o = c.out[0];
  const View* const views[3] = {&a, &b, &o};
  const auto nest = make_nest<3>(views);
  const T *pa = a.ptr<T>(), *pb = b.ptr<T>();
  R* po = o.ptr<R>();
  for_rows(nest, [&](const int64_t* at, int64_t n) {
    binary_row<T, R>(f, pa + at[0], nest.inner_stride[0], pb + at[1], nest.inner_stride[1], po + at[2],
                     nest.inner_stride[2], n);
  });
}

template <class T, class F>
static void unary(const Call& c, const F& f) {
  const View *const views[2] = {&c.in[0], &c.out[0]};
  const auto nest = make_nest<2>(views);
  const T* a = c.in[0].ptr<T>();
  T* o = c.out[0].ptr<T>();
  for_rows(nest, [&](const int64_t* at, int64_t n) {
    const T* x = a + at[0];
    T* y = o + at[1];
    const int64_t sx = nest.inner_stride[0], sy = nest.inner_stride[1];
    if (sx == 1 && sy == 1) {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
    } else {
      for (int64_t i = 0; i < n; ++i) y[i * sy] = f(x[i * sx]);
    }
  });
}

#define BINARY(name, expression)                                            \
  struct F_##name {                                                         \
    template <class T> RILLE_INLINE T go(T a, T b) { return (expression); } \
    template <class T> inline T operator()(T a, T b) const { return go(a, b); } \
  };                                                                        \
  void name(const Call& c) { RILLE_NUMBERS(c.in[0].dtype, binary<T, T>(c, F_##name())); }
#define COMPARE(name, expression)                                           \
  void name(const Call& c) {                                                \
    RILLE_NUMBERS(c.in[0].dtype, binary<T, uint8_t>(c, [](T a, T b) -> uint8_t { return (expression); })); \
  }
#define BINARY_FLOAT(name, expression)                                      \
  void name(const Call& c) {                                                \
    RILLE_FLOATS(c.in[0].dtype, binary<T, T>(c, [](T a, T b) -> T { return (expression); })); \
  }
#define UNARY_FLOAT(name, expression)                                       \
  void name(const Call& c) {                                                \
    RILLE_FLOATS(c.in[0].dtype, unary<T>(c, [](T x) -> T { return (expression); })); \
  }

BINARY(add, T(a + b))
BINARY(sub, T(a - b))
BINARY(mul, T(a * b))
BINARY(maximum, a < b || b != b ? b : a)   // a NaN on either side comes through
BINARY(minimum, b < a || b != b ? b : a)
COMPARE(lt, a < b)
COMPARE(le, a <= b)
COMPARE(gt, a > b)
COMPARE(ge, a >= b)
COMPARE(eq, a == b)
COMPARE(ne, a != b)
BINARY_FLOAT(div, a / b)
BINARY_FLOAT(pow, b == T(2) ? a * a : vpow(a, b))
void neg(const Call& c) { RILLE_NUMBERS(c.in[0].dtype, unary<T>(c, [](T x) -> T { return T(-x); })); }
void abs(const Call& c) { RILLE_NUMBERS(c.in[0].dtype, unary<T>(c, [](T x) -> T { return x < T(0) ? T(-x) : x; })); }
UNARY_FLOAT(exp, vexp(x))
UNARY_FLOAT(log, vlog(x))
UNARY_FLOAT(sqrt, vsqrt(x))
UNARY_FLOAT(rsqrt, T(1) / vsqrt(x))
UNARY_FLOAT(tanh, vtanh(x))
UNARY_FLOAT(sigmoid, T(1) / (T(1) + vexp(-x)))
UNARY_FLOAT(relu, x > T(0) || x != x ? x : T(0))
BINARY_FLOAT(tanh_grad, b * (T(1) - a * a))
BINARY_FLOAT(sigmoid_grad, b * a * (T(1) - a))
BINARY_FLOAT(relu_grad, a > T(0) ? b : T(0))
BINARY_FLOAT(abs_grad, a > T(0) ? b : a < T(0) ? -b : T(0))

// gelu(x) = x/2 (1 + tanh(u)) = x / (1 + e^-2u), u = sqrt(2/pi) (x + 0.044715 x^3) (Hendrycks and Gimpel 2016).
template <class T> RILLE_INLINE T gelu_one(T x) {
  const T u2 = T(1.5957691216057308) * (x + T(0.044715) * x * x * x);
  return x / (T(1) + vexp(-u2));
}
// With s = 1/(1 + e^-2u): gelu' = s + x s (1 - s) 2u'.
template <class T> RILLE_INLINE T gelu_slope(T x) {
  const T u2 = T(1.5957691216057308) * (x + T(0.044715) * x * x * x);
  const T s = T(1) / (T(1) + vexp(-u2));
  return s + x * s * (T(1) - s) * T(1.5957691216057308) * (T(1) + T(3 * 0.044715) * x * x);
}
UNARY_FLOAT(gelu, gelu_one(x))
BINARY_FLOAT(gelu_grad, gelu_slope(a) * b)

void where(const Call& c) {
  const View* const views[4] = {&c.in[0], &c.in[1], &c.in[2], &c.out[0]};
  const auto nest = make_nest<4>(views);
  const uint8_t* w = c.in[0].ptr<uint8_t>();
  RILLE_NUMBERS(c.out[0].dtype, {
    const T *a = c.in[1].ptr<T>(), *b = c.in[2].ptr<T>();
    T* o = c.out[0].ptr<T>();
    const int64_t* s = nest.inner_stride;
    for_rows(nest, [&](const int64_t* at, int64_t n) {
      for (int64_t i = 0; i < n; ++i)
        o[at[3] + i * s[3]] = w[at[0] + i * s[0]] ? a[at[1] + i * s[1]] : b[at[2] + i * s[2]];
    });
  });
}

void axpy(const Call& c) {
  const View* const views[3] = {&c.out[0], &c.in[0], &c.out[0]};
  const auto nest = make_nest<3>(views);
  RILLE_NUMBERS(c.out[0].dtype, {
    const T alpha = T(c.attrs->f[0]);
    const T* b = c.in[0].ptr<T>();
    T* o = c.out[0].ptr<T>();
    for_rows(nest, [&](const int64_t* at, int64_t n) {
      binary_row<T, T>([alpha](T x, T y) -> T { return T(x + alpha * y); }, o + at[0], nest.inner_stride[0], b + at[1],
                       nest.inner_stride[1], o + at[2], nest.inner_stride[2], n);
    });
  });
}

void scale(const Call& c) {
  RILLE_NUMBERS(c.out[0].dtype, {
    T number = T(c.attrs->f[0]);
    View scalar = c.out[0];
    for (int d = 0; d < scalar.strides.n; ++d) scalar.strides[d] = 0;
    scalar.data = &number;
    const View& by = c.n_in ? c.in[0] : scalar;
    const View* const views[3] = {&c.out[0], &by, &c.out[0]};
    const auto nest = make_nest<3>(views);
    const T* b = by.ptr<T>();
    T* o = c.out[0].ptr<T>();
    for_rows(nest, [&](const int64_t* at, int64_t n) {
      binary_row<T, T>([](T x, T y) -> T { return T(x * y); }, o + at[0], nest.inner_stride[0], b + at[1],
                       nest.inner_stride[1], o + at[2], nest.inner_stride[2], n);
    });
  });
}

}  // namespace rille::kernels::RILLE_ISA
