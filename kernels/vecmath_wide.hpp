// For f32: pow, inverse trigonometric functions, and the logarithm, sine and cosine for normally distributed random
// numbers. They are polynomials in f64 that the compiler vectorizes, without calls, branches or tables. Their error is
// about 1e-10, so an f32 result is nearly always the nearest one (checked in tests/unit/kernels). The coefficients come
// from interpolation at Chebyshev points. f64 uses libm.
#pragma once

#include "kernels/vecmath.hpp"

namespace rille::kernels::RILLE_ISA {

RILLE_INLINE double bits_to_double(uint64_t i) {
  double d;
  memcpy(&d, &i, 8);
  return d;
}
RILLE_INLINE uint64_t double_to_bits(double d) {
  uint64_t i;
  memcpy(&i, &d, 8);
  return i;
}

// log2 of positive normal numbers: x = 2^n m, m in [sqrt(1/2), sqrt(2)), log2 m = s P(s^2), s = (m - 1) / (m + 1).
RILLE_INLINE double wide_log2(double x) {
  const uint64_t low = 0x3fe6a09e667f3bcd, bias = 1024ull << 52;
  const uint64_t u = double_to_bits(x), k = (u - low + bias) >> 52;  // k is n + 1024
  const double n = bits_to_double(k | 0x4330000000000000) - (4503599627370496.0 + 1024);
  const double m = bits_to_double(u - (k << 52) + bias), s = (m - 1) / (m + 1), z = s * s;
  double p = 0.34071204078540707;
  p = p * z + 0.41167376691524282;
  p = p * z + 0.57708356597425958;
  p = p * z + 0.96179667345195896;
  p = p * z + 2.885390081789986;
  return n + s * p;
}

// 2^t, for |t| up to 1000.
RILLE_INLINE double wide_exp2(double t) {
  const double shifted = t + 6755399441055744.0, r = t - (shifted - 6755399441055744.0);  // n: the low bits
  double p = 1.5303699899644103e-05;
  p = p * r + 0.00015469729234889767;
  p = p * r + 0.0013333478477891695;
  p = p * r + 0.0096180256132207473;
  p = p * r + 0.055504109063197353;
  p = p * r + 0.24022651213499499;
  p = p * r + 0.69314718055683477;
  p = p * r + 0.99999999995956157;
  return p * bits_to_double((double_to_bits(shifted) << 52) + (1023ull << 52));
}

RILLE_INLINE float wide_cube(float a) { return float(double(a) * a * a); }
RILLE_INLINE double wide_cube(double a) { return a * a * a; }

// Special values as in C's pow: 1 for (1, any), (any, 0), (-1, inf); NaN for a negative base and a fractional power.
RILLE_INLINE float wide_pow(float a, float b) {
  const float size = __builtin_fabsf(a), inf = __builtin_inff();
  const double x = size;  // f32 subnormals are normal numbers in f64
  const double l = size == 0.0f ? -(double)inf : size < inf ? wide_log2(x) : x;  // inf and NaN stay as they are
  double t = (double)b * l;
  t = t < -300 ? -300 : t > 300 ? 300 : t;  // both limits are outside f32's range
  const float y = (float)wide_exp2(t), half = 0.5f * b;
  const bool whole = vfloor(b) == b, odd = whole & (vfloor(half) != half);
  const float none = __builtin_nanf(""), signed_ = odd ? copysignf(y, a) : y;
  const float strict = (a < 0.0f) & (size < inf) & !whole ? none : signed_;
  const bool one = (a == 1.0f) | (b == 0.0f) | ((size == 1.0f) & (__builtin_fabsf(b) == inf));
  return one ? 1.0f : b == 2.0f ? a * a : b == 3.0f ? wide_cube(a) : strict;
}
RILLE_INLINE double wide_pow(double a, double b) { return b == 2 ? a * a : b == 3 ? wide_cube(a) : ::pow(a, b); }

// atan of t in [0, 1].
RILLE_INLINE double wide_arc(double t) {
  const double z = t * t;
  double p = -0.00066339532787247147;
  p = p * z + 0.0047324834885064445;
  p = p * z - 0.015828321088492522;
  p = p * z + 0.033826216738115901;
  p = p * z - 0.053956678728704216;
  p = p * z + 0.072282782458678335;
  p = p * z - 0.089741719231518635;
  p = p * z + 0.11091922955629865;
  p = p * z - 0.14283813254602259;
  p = p * z + 0.19999901102080697;
  p = p * z - 0.33333331290886781;
  p = p * z + 0.99999999992930344;
  return p * t;
}
static constexpr double quarter_turn = 1.5707963267948966, half_turn = 3.1415926535897932;
RILLE_INLINE float wide_atan2(float y, float x) {
  const double a = __builtin_fabsf(x), b = __builtin_fabsf(y);
  const double high = a < b ? b : a, low = a < b ? a : b;
  const double t = low == high ? (high == 0 ? 0.0 : 1.0) : low / high;  // high and low may both be infinite
  double r = wide_arc(t);
  r = a < b ? quarter_turn - r : r;
  r = copysignf(1.0f, x) < 0.0f ? half_turn - r : r;
  const float f = copysignf((float)r, y);
  return (x != x) | (y != y) ? x + y : f;
}
RILLE_INLINE double wide_atan2(double y, double x) { return ::atan2(y, x); }
RILLE_INLINE float wide_atan(float x) { return wide_atan2(x, 1.0f); }
RILLE_INLINE double wide_atan(double x) { return ::atan(x); }

// asin of s in [0, 1/2], where z = s^2.
RILLE_INLINE double wide_small_asin(double s, double z) {
  double p = 0.034748419491656149;
  p = p * z + 0.0074010128433300813;
  p = p * z + 0.024650860398245867;
  p = p * z + 0.030102507344017402;
  p = p * z + 0.044661139264570868;
  p = p * z + 0.074999419089597272;
  p = p * z + 0.16666667364183005;
  p = p * z + 0.9999999999863538;
  return p * s;
}
// asin a = pi/2 - 2 asin sqrt((1 - a) / 2); for a > 1 the root is NaN.
RILLE_INLINE float wide_asin(float x) {
  const double a = __builtin_fabsf(x), z = a > 0.5 ? 0.5 * (1 - a) : a * a, s = a > 0.5 ? __builtin_sqrt(z) : a;
  const double r = wide_small_asin(s, z);
  return copysignf((float)(a > 0.5 ? quarter_turn - 2 * r : r), x);
}
RILLE_INLINE double wide_asin(double x) { return ::asin(x); }
RILLE_INLINE float wide_acos(float x) {
  const double a = __builtin_fabsf(x), z = a > 0.5 ? 0.5 * (1 - a) : a * a, s = a > 0.5 ? __builtin_sqrt(z) : a;
  const double r = wide_small_asin(s, z), from = x < 0.0f ? half_turn : 0.0, way = x < 0.0f ? -2.0 : 2.0;
  return (float)(a > 0.5 ? from + way * r : quarter_turn - (x < 0.0f ? -r : r));
}
RILLE_INLINE double wide_acos(double x) { return ::acos(x); }

// Sine and cosine of u turns, u in [0, 1): an exact reduction to the nearest quarter turn, then polynomials.
struct Turned {
  double sine, cosine;
};
RILLE_INLINE Turned wide_turned(double u) {
  const double shifted = 4 * u + 6755399441055744.0;  // the low bits hold the quarter
  const double f = u - 0.25 * (shifted - 6755399441055744.0), z = f * f;
  const uint64_t quarter = double_to_bits(shifted);
  double s = -14.916562324881207;
  s = s * z + 42.055569953563293;
  s = s * z - 76.705834479078632;
  s = s * z + 81.605249183649221;
  s = s * z - 41.341702240276035;
  s = (s * z + 6.2831853071795596) * f;
  double c = -26.058073257265136;
  c = c * z + 60.238181641109925;
  c = c * z - 85.456764910137267;
  c = c * z + 64.939393831189008;
  c = c * z - 19.739208801922175;
  c = c * z + 0.99999999999994427;
  const double y = quarter & 1 ? c : s, x = quarter & 1 ? s : c;
  return {quarter & 2 ? -y : y, (quarter + 1) & 2 ? -x : x};
}

}  // namespace rille::kernels::RILLE_ISA
