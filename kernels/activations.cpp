// Activations and their gradients.
//
// Activations: attrs.f[0] is the slope of leaky_relu below zero, alpha of elu, or beta of softplus; gelu is the tanh
// form, gelu_erf the exact form. Gradients (NAME_grad): in = {saved tensor, gradient of the output}; the saved tensor
// is the output y for tanh, sigmoid and relu, and the input x for the other activations.
#include "kernels/walk.hpp"

namespace rille::kernels::RILLE_ISA {

// `expression` uses x and the operation's number f, which is attrs.f[0].
#define ACTIVATION(name, expression)                  \
  struct F_##name {                                   \
    template <class T>                                \
    RILLE_INLINE T go(T x, [[maybe_unused]] T f, T) { \
      return T(expression);                           \
    }                                                 \
  };                                                  \
  void name(const Call& c) { unary(c, RILLE_PICK_FLOAT(row1, F_##name, c.in[0].dtype)); }
// `expression` uses the saved tensor x (or y), the gradient b, and the operation's number f.
#define SLOPE(name, expression)                         \
  struct F_##name {                                     \
    static constexpr bool broadcasts = false;           \
    template <class T>                                  \
    RILLE_INLINE T go(T x, T b, [[maybe_unused]] T f) { \
      return T(expression);                             \
    }                                                   \
  };                                                    \
  void name(const Call& c) { binary(c, RILLE_PICK_FLOAT(row2, F_##name, c.in[0].dtype)); }

template <class T>
RILLE_INLINE T logistic(T x) {
  return T(1) / (T(1) + vexp(-x));
}

ACTIVATION(tanh, vtanh(x))
SLOPE(tanh_grad, b*(T(1) - x * x))
ACTIVATION(sigmoid, logistic(x))
SLOPE(sigmoid_grad, b* x*(T(1) - x))
ACTIVATION(relu, x > T(0) || x != x ? x : T(0))
SLOPE(relu_grad, x > T(0) ? b : T(0))
SLOPE(abs_grad, x > T(0) ? b : x < T(0) ? -b : T(0))

// gelu(x) = x/2 (1 + tanh(u)) = x / (1 + e^-2u), u = sqrt(2/pi) (x + 0.044715 x^3) (Hendrycks and Gimpel 2016).
template <class T>
RILLE_INLINE T gelu_one(T x) {
  const T u2 = T(1.5957691216057308) * (x + T(0.044715) * x * x * x);
  return x / (T(1) + vexp(-u2));
}
// The derivative of gelu: s + x s (1 - s) 2u', where s = 1/(1 + e^-2u) and u as in gelu_one.
template <class T>
RILLE_INLINE T gelu_slope(T x) {
  const T u2 = T(1.5957691216057308) * (x + T(0.044715) * x * x * x);
  const T s = T(1) / (T(1) + vexp(-u2));
  return s + x * s * (T(1) - s) * T(1.5957691216057308) * (T(1) + T(3 * 0.044715) * x * x);
}
ACTIVATION(gelu, gelu_one(x))
SLOPE(gelu_grad, gelu_slope(x) * b)

// gelu_erf: x Phi(x), with the derivative Phi(x) + x phi(x). Phi is 1/2 + erf/2: halving is exact, so the bits do not
// depend on whether the compiler fuses this sum with the end of verf, as it did for whole vectors but not for the rest
// of a row.
template <class T>
RILLE_INLINE T normal_cdf(T x) {
  return T(0.5) + T(0.5) * verf(x * T(0.70710678118654752));
}
ACTIVATION(gelu_erf, x* normal_cdf(x))
SLOPE(gelu_erf_grad, b*(normal_cdf(x) + x * T(0.39894228040143268) * vexp(T(-0.5) * x * x)))

template <class T>
RILLE_INLINE T silu_slope(T x) {
  const T s = logistic(x);
  return s * (T(1) + x * (T(1) - s));
}
ACTIVATION(silu, x* logistic(x))
SLOPE(silu_grad, b* silu_slope(x))
ACTIVATION(leaky_relu, x > T(0) ? x : f * x)
SLOPE(leaky_relu_grad, x > T(0) ? b : f * b)
ACTIVATION(elu, x > T(0) ? x : f * vexpm1(x))
SLOPE(elu_grad, x > T(0) ? b : b * f * vexp(x))
// log(1 + e^(f x)) / f, in a form that does not overflow.
ACTIVATION(softplus, (f * x > T(0) ? x : T(0)) + vlog1p(vexp(-vabs(f * x))) / f)
SLOPE(softplus_grad, b* logistic(f* x))
ACTIVATION(hardswish, x <= T(-3) ? T(0) : x >= T(3) ? x : x * (x + T(3)) / T(6))
SLOPE(hardswish_grad, x <= T(-3) ? T(0) : x >= T(3) ? b : b * (x + x + T(3)) / T(6))
ACTIVATION(hardsigmoid, x <= T(-3) ? T(0) : x >= T(3) ? T(1) : (x + T(3)) / T(6))
SLOPE(hardsigmoid_grad, x > T(-3) && x < T(3) ? b / T(6) : T(0))

}  // namespace rille::kernels::RILLE_ISA
