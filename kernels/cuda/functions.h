// Functions of floating-point numbers, activations and their derivatives, each defined once. f16 and bf16 are computed
// in f32. functions.cu makes kernels of them; included alone, after arithmetic.h, this file makes functors.
#pragma once

#ifndef UNARY
#define UNARY(op, expression) FUNCTION_1(op, expression)
#define BINARY(op, expression) FUNCTION_2(op, expression)
#endif

namespace rille::kernels::cuda {

// BINARY: of a and b. For a gradient, a is the kept tensor (x or y) and b the gradient of the output.
BINARY(div, a / b)
BINARY(pow, b == T(2) ? a * a : pow(a, b))
BINARY(atan2, atan2(a, b))
UNARY(exp, exp(x))
UNARY(expm1, expm1(x))
UNARY(log, log(x))
UNARY(log1p, log1p(x))
UNARY(sqrt, sqrt(x))
UNARY(rsqrt, rsqrt(x))
UNARY(sin, sin(x))
UNARY(cos, cos(x))
UNARY(tan, tan(x))
UNARY(asin, asin(x))
UNARY(acos, acos(x))
UNARY(atan, atan(x))
UNARY(sinh, sinh(x))
UNARY(cosh, cosh(x))
UNARY(erf, erf(x))
UNARY(floor, floor(x))
UNARY(ceil, ceil(x))
UNARY(round, rint(x))
UNARY(trunc, trunc(x))

template <class T> DEVICE T logistic(T x) { return T(1) / (T(1) + exp(-x)); }

UNARY(tanh, tanh(x))
BINARY(tanh_grad, b * (T(1) - a * a))
UNARY(sigmoid, logistic(x))
BINARY(sigmoid_grad, b * a * (T(1) - a))
UNARY(relu, x > T(0) || x != x ? x : T(0))
BINARY(relu_grad, a > T(0) ? b : T(0))
BINARY(abs_grad, a > T(0) ? b : a < T(0) ? -b : T(0))

// gelu(x) = x/2 (1 + tanh(u)) = x / (1 + e^-2u), u = sqrt(2/pi) (x + 0.044715 x^3) (Hendrycks and Gimpel 2016).
template <class T> DEVICE T gelu_gate(T x) {
  return T(1) / (T(1) + exp(-T(1.5957691216057308) * (x + T(0.044715) * x * x * x)));
}
// The derivative of gelu: s + x s (1 - s) 2u', where s = 1/(1 + e^-2u) and u as in gelu_gate.
template <class T> DEVICE T gelu_slope(T x) {
  const T s = gelu_gate(x);
  return s + x * s * (T(1) - s) * T(1.5957691216057308) * (T(1) + T(3 * 0.044715) * x * x);
}
UNARY(gelu, x * gelu_gate(x))
BINARY(gelu_grad, gelu_slope(a) * b)
// gelu_erf: x Phi(x), with the derivative Phi(x) + x phi(x).
UNARY(gelu_erf, x * T(0.5) * (T(1) + erf(x * T(0.70710678118654752))))
BINARY(gelu_erf_grad, b * (T(0.5) * (T(1) + erf(a * T(0.70710678118654752))) +
                           a * T(0.39894228040143268) * exp(T(-0.5) * a * a)))
template <class T> DEVICE T silu_slope(T x) {
  const T s = logistic(x);
  return s * (T(1) + x * (T(1) - s));
}
UNARY(silu, x * logistic(x))
BINARY(silu_grad, b * silu_slope(a))
UNARY(leaky_relu, x > T(0) ? x : f * x)
BINARY(leaky_relu_grad, a > T(0) ? b : f * b)
UNARY(elu, x > T(0) ? x : f * expm1(x))
BINARY(elu_grad, a > T(0) ? b : b * f * exp(a))
// log(1 + e^(f x)) / f, in a form that does not overflow.
UNARY(softplus, (f * x > T(0) ? x : T(0)) + log1p(exp(-fabs(f * x))) / f)
BINARY(softplus_grad, b * logistic(f * a))
UNARY(hardswish, x <= T(-3) ? T(0) : x >= T(3) ? x : x * (x + T(3)) / T(6))
BINARY(hardswish_grad, a <= T(-3) ? T(0) : a >= T(3) ? b : b * (a + a + T(3)) / T(6))
UNARY(hardsigmoid, x <= T(-3) ? T(0) : x >= T(3) ? T(1) : (x + T(3)) / T(6))
BINARY(hardsigmoid_grad, a > T(-3) && a < T(3) ? b / T(6) : T(0))

}  // namespace rille::kernels::cuda
#undef UNARY
#undef BINARY
