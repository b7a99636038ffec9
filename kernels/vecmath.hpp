// exp, tanh and friends that the compiler turns into vector code: no calls, no branches, no tables. f32
// results are within about 2 units in the last place of the true value (checked in tests/unit/kernels); f64
// goes to libm and is slow. Every function is static, so that each instruction set keeps its own copy.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

namespace rille::kernels::RILLE_ISA {

#define RILLE_INLINE static inline __attribute__((always_inline))

RILLE_INLINE float bits_to_float(int32_t i) { float f; memcpy(&f, &i, 4); return f; }

// e^x = 2^n e^r, |r| <= ln2/2, with a degree-6 polynomial (coefficients of the Cephes library's expf).
RILLE_INLINE float vexp(float x) {
  const float lo = -87.3f, hi = 88.7f;
  const float t = x < lo ? lo : x > hi ? hi : x;
  const float n = (t * 1.44269504088896341f + 12582912.0f) - 12582912.0f;   // round to nearest
  const float r = (t - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  // Two factors, so that n = 128 does not overflow the exponent before the product does.
  const int32_t e = (int32_t)n, half = e >> 1;
  const float y = p * bits_to_float((half + 127) << 23) * bits_to_float((e - half + 127) << 23);
  return x < lo ? 0.0f : x > 88.72284f ? __builtin_inff() : x != x ? x : y;
}
RILLE_INLINE double vexp(double x) { return ::exp(x); }

// Below 0.625 an odd polynomial (Cephes tanhf), above 1 - 2/(e^2x + 1).
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

RILLE_INLINE float vlog(float x) { return ::logf(x); }
RILLE_INLINE double vlog(double x) { return ::log(x); }
RILLE_INLINE float vsqrt(float x) { return __builtin_sqrtf(x); }
RILLE_INLINE double vsqrt(double x) { return __builtin_sqrt(x); }
RILLE_INLINE float vpow(float x, float y) { return ::powf(x, y); }
RILLE_INLINE double vpow(double x, double y) { return ::pow(x, y); }
RILLE_INLINE float vabs(float x) { return __builtin_fabsf(x); }
RILLE_INLINE double vabs(double x) { return __builtin_fabs(x); }

}  // namespace rille::kernels::RILLE_ISA
