// Arithmetic, comparisons and bit operations on all number types, each defined once. Integers wrap around. A file that
// includes this one may define what each line makes (arithmetic.cu: kernels for all types); included alone it makes
// functors F_<kernel's name>, for the groups of a plan.
#pragma once

#ifndef UNARY
#define UNARY(op, expression) FUNCTION_1(op, expression)
#define BINARY(op, expression) FUNCTION_2(op, expression)
#define SLOPE(op, expression) FUNCTION_2(op, expression)
#define COMPARE(op, expression) TEST_2(op, expression)
#define BITS(op, expression) FUNCTION_2(op, expression)
#define BITS_NOT(op, expression) FUNCTION_1(op, expression)
#define LOGICAL_NOT(op, expression) FUNCTION_1(op, expression)
#endif

namespace rille::kernels::cuda {

BINARY(add, a + b)
BINARY(sub, a - b)
BINARY(mul, a * b)
BINARY(maximum, a < b || b != b ? b : a)   // if either operand is NaN, so is the result
BINARY(minimum, b < a || b != b ? b : a)
BINARY(axpy, a + f * b)
UNARY(neg, -x)
UNARY(abs, x < T(0) ? -x : x)
UNARY(sign, x > T(0) ? T(1) : x < T(0) ? T(-1) : x)
UNARY(clamp, x < f ? f : x > g ? g : x)
SLOPE(clamp_grad, a >= f && a <= g ? b : T(0))

COMPARE(lt, a < b)
COMPARE(le, a <= b)
COMPARE(gt, a > b)
COMPARE(ge, a >= b)
COMPARE(eq, a == b)
COMPARE(ne, a != b)

BITS(bitwise_and, a & b)
BITS(bitwise_or, a | b)
BITS(bitwise_xor, a ^ b)
BITS_NOT(bitwise_not, ~x)
LOGICAL_NOT(logical_not, x == T(0))

// Python's // and % of floats: rounds towards minus infinity, and the remainder has b's sign. Computed from the exact
// remainder, as CPython does, since a / b may round up to the next integer.
template <class T> DEVICE T floored(T a, T b) {
  const T rest = fmod(a, b);
  if (b == T(0) || rest != rest) return b == T(0) ? a / b : rest;
  const T whole = (a - rest) / b - T(rest != T(0) && (b < T(0)) != (rest < T(0))), low = floor(whole);
  return whole == T(0) ? a / b * T(0) : whole - low > T(0.5) ? low + T(1) : low;
}
template <class T> DEVICE T rest_of(T a, T b) {
  const T r = fmod(a, b);
  return r != T(0) && (r < T(0)) != (b < T(0)) ? r + b : r;
}
FUNCTION_2(floor_divide, floored(a, b))
FUNCTION_2(remainder, rest_of(a, b))

}  // namespace rille::kernels::cuda
#undef UNARY
#undef BINARY
#undef SLOPE
#undef COMPARE
#undef BITS
#undef BITS_NOT
#undef LOGICAL_NOT
