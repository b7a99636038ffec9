// exp, tanh and similar functions that the compiler can vectorize: no calls, branches or tables. f32 results are
// within about 2 units in the last place of the true value (checked in tests/unit/kernels). f64 uses libm and is slow.
// Every function is static, so that each instruction set gets its own copy.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

namespace rille::kernels::RILLE_ISA {

#define RILLE_INLINE static inline __attribute__((always_inline))

RILLE_INLINE float bits_to_float(int32_t i) {
  float f;
  memcpy(&f, &i, 4);
  return f;
}

// e^x = 2^n e^r, |r| <= ln2/2, with a degree-6 polynomial (coefficients of the Cephes library's expf).
RILLE_INLINE float vexp(float x) {
  const float lo = -87.3f, hi = 88.7f;
  const float t = x < lo ? lo : x > hi ? hi : x;
  const float n = (t * 1.44269504088896341f + 12582912.0f) - 12582912.0f;  // rounded to an integer
  const float r = (t - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  // Multiplies by two factors: for n = 128 a single 2^n would overflow although the product does not.
  const int32_t e = (int32_t)n, half = e >> 1;
  const float y = p * bits_to_float((half + 127) << 23) * bits_to_float((e - half + 127) << 23);
  return x < lo ? 0.0f : x > 88.72284f ? __builtin_inff() : x != x ? x : y;
}
RILLE_INLINE double vexp(double x) { return ::exp(x); }

// Below 0.625 an odd polynomial (from Cephes' tanhf); above, 1 - 2/(e^2x + 1).
RILLE_INLINE float vtanh(float x) {
  const float a = fabsf(x), z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z - 5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z - 3.33332819422e-1f;
  const float small = x + x * z * p;
  const float large = copysignf(1.0f - 2.0f / (vexp(2.0f * a) + 1.0f), x);
  return a < 0.625f ? small : large;
}
RILLE_INLINE double vtanh(double x) { return ::tanh(x); }

// log x = e ln2 + log m, m in [sqrt(1/2), sqrt(2)), with a degree-8 polynomial (coefficients of Cephes' logf).
RILLE_INLINE float vlog(float x) {
  const bool small = x < 1.17549435e-38f;  // subnormal numbers are scaled up by 2^23 first
  uint32_t u;                              // unsigned, since a negative x overflows
  const float scaled = small ? x * 8388608.0f : x;
  memcpy(&u, &scaled, 4);
  const int32_t power = (int32_t)(u - 0x3f3504f3u) >> 23, e = power + (small ? -23 : 0);
  const float m = bits_to_float((int32_t)(u - ((uint32_t)power << 23))) - 1.0f, z = m * m, n = float(e);
  float p = 7.0376836292e-2f;
  p = p * m - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  float y = m * z * p + n * -2.12194440e-4f;
  y = (y - 0.5f * z) + m + n * 0.693359375f;
  return x > 0.0f ? (x > 3.40282347e38f ? x : y) : x == 0.0f ? -__builtin_inff() : __builtin_nanf("");
}
RILLE_INLINE double vlog(double x) { return ::log(x); }
RILLE_INLINE float vsqrt(float x) { return __builtin_sqrtf(x); }
RILLE_INLINE double vsqrt(double x) { return __builtin_sqrt(x); }

RILLE_INLINE float vfloor(float x) { return __builtin_floorf(x); }
RILLE_INLINE double vfloor(double x) { return __builtin_floor(x); }
RILLE_INLINE float vround(float x) { return __builtin_rintf(x); }  // the default rounding mode: to nearest even
RILLE_INLINE double vround(double x) { return __builtin_rint(x); }

// sin and cos on [-pi/4, pi/4] (coefficients of Cephes' sinf), after computing x - n pi/2 in f64; for |x| <=
// sine_limit.
static constexpr float sine_limit = 1e8f;
RILLE_INLINE float sin_quarter(float x, int32_t quarter) {
  const double shifted = (double)x * 0.63661977236758134 + 6755399441055744.0;  // the low bits of `shifted` are n
  int64_t n;
  memcpy(&n, &shifted, 8);
  const float r = (float)((double)x - (shifted - 6755399441055744.0) * 1.5707963267948966), z = r * r;
  const uint32_t q = (uint32_t)n + (uint32_t)quarter;
  const float s = ((-1.9515295891e-4f * z + 8.3321608736e-3f) * z - 1.6666654611e-1f) * z * r + r;
  const float c =
      ((2.443315711809948e-5f * z - 1.388731625493765e-3f) * z + 4.166664568298827e-2f) * z * z - 0.5f * z + 1.0f;
  const float y = q & 1 ? c : s;
  return q & 2 ? -y : y;
}
RILLE_INLINE float vsin(float x) { return sin_quarter(x, 0); }
RILLE_INLINE float vcos(float x) { return sin_quarter(x, 1); }
RILLE_INLINE double vsin(double x) { return ::sin(x); }
RILLE_INLINE double vcos(double x) { return ::cos(x); }

// Below 1 an odd polynomial; above 1, 1 - e^(polynomial). Both are least-squares fits, checked in tests/unit/kernels.
RILLE_INLINE float verf(float x) {
  const float a = __builtin_fabsf(x), z = x * x;
  float p = 8.529401336e-05f;
  p = p * z - 8.179632183e-04f;
  p = p * z + 5.204226694e-03f;
  p = p * z - 2.686066479e-02f;
  p = p * z + 1.128371805e-01f;
  p = p * z - 3.761263519e-01f;
  p = p * z + 1.128379167e+00f;
  const float near = p * x;
  const float t = a < 4.0f ? a : 4.0f;
  float q = -4.453897476e-08f;
  q = q * t + 2.594339555e-06f;
  q = q * t - 5.493617146e-05f;
  q = q * t + 6.433164826e-04f;
  q = q * t - 4.910780004e-03f;
  q = q * t + 2.673623398e-02f;
  q = q * t - 1.104995711e-01f;
  q = q * t - 6.314834944e-01f;
  q = q * t - 1.130388423e+00f;
  q = q * t + 3.495821260e-04f;
  const float large = copysignf(1.0f - vexp(q), x);
  return a < 0.9f ? near : x != x ? x : large;
}
RILLE_INLINE double verf(double x) { return ::erf(x); }

// log(1 + x) and e^x - 1 near zero, from the rounded 1 + x and e^x: the rounding error cancels in the quotient (Kahan;
// see Higham, Accuracy and Stability of Numerical Algorithms, 1.14).
RILLE_INLINE float vlog1p(float x) {
  const float u = 1.0f + x, d = u - 1.0f;
  const float y = vlog(u) * (x / d);
  return d == 0.0f || x == __builtin_inff() ? x : y;
}
RILLE_INLINE double vlog1p(double x) { return ::log1p(x); }
RILLE_INLINE float vexpm1(float x) {
  const float u = vexp(x), d = u - 1.0f;
  const float y = d * (x / vlog(u));
  return u == 1.0f ? x : x < -17.0f ? d : u == __builtin_inff() ? u : y;
}
RILLE_INLINE double vexpm1(double x) { return ::expm1(x); }
// Uses t = e^|x| / 2, which overflows only if the result does.
RILLE_INLINE float vcosh(float x) {
  const float t = vexp(__builtin_fabsf(x) - 0.69314718f);
  return t + 0.25f / t;
}
RILLE_INLINE double vcosh(double x) { return ::cosh(x); }
RILLE_INLINE float vsinh(float x) {
  const float a = __builtin_fabsf(x), t = vexp(a - 0.69314718f), e = vexpm1(a < 1.0f ? a : 1.0f);
  return copysignf(a < 1.0f ? 0.5f * (e + e / (e + 1.0f)) : t - 0.25f / t, x);
}
RILLE_INLINE double vsinh(double x) { return ::sinh(x); }

RILLE_INLINE float vabs(float x) { return __builtin_fabsf(x); }
RILLE_INLINE double vabs(double x) { return __builtin_fabs(x); }

}  // namespace rille::kernels::RILLE_ISA
