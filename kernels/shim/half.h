// The words of CUDA C++ for a plain C++ compiler, part 4: __half and __nv_bfloat16. Arithmetic is done in float and
// rounded once to nearest, ties to even, as the GPU's does.
#pragma once
#include "rille_math.h"

// Plain bits, with no constructor, so that they may stand in shared memory and in unions.
RILLE_IN unsigned short rille_to_bf16(float f) {
  const unsigned u = __float_as_uint(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return (unsigned short)0x7fff;
  return (unsigned short)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}
RILLE_IN float rille_from_bf16(unsigned short b) { return __uint_as_float((unsigned)b << 16); }
RILLE_IN unsigned short rille_to_f16(float f) {
#ifdef __FLT16_MAX__
  const _Float16 h = (_Float16)f;
  unsigned short bits;
  __builtin_memcpy(&bits, &h, 2);
  return bits;
#else
  const unsigned u = __float_as_uint(f), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;
  if (a > 0x7f800000u) return (unsigned short)0x7fff;
  if (a >= 0x477ff000u) return (unsigned short)(sign | 0x7c00u);          // rounds beyond 65504
  if (a < 0x38800000u) {                                                  // subnormal: the adder rounds
    return (unsigned short)(sign | (__float_as_uint(__uint_as_float(a) + 0.5f) - 0x3f000000u));
  }
  return (unsigned short)(sign | ((a + 0xc8000fffu + (a >> 13 & 1)) >> 13));
#endif
}
RILLE_IN float rille_from_f16(unsigned short b) {
#ifdef __FLT16_MAX__
  _Float16 h;
  __builtin_memcpy(&h, &b, 2);
  return (float)h;
#else
  const unsigned sign = (unsigned)(b & 0x8000u) << 16, e = b >> 10 & 31u, m = b & 0x3ffu;
  if (e == 31) return __uint_as_float(sign | 0x7f800000u | m << 13);
  if (e == 0) return __uint_as_float(sign | __float_as_uint((float)m * 5.9604644775390625e-8f));
  return __uint_as_float(sign | (e + 112) << 23 | m << 13);
#endif
}

#define RILLE_SMALL_FLOAT(H, H2, short_name, code)                                                                   \
  struct H {                                                                                                         \
    unsigned short bits;                                                                                             \
    H() = default;                                                                                                   \
    RILLE_FORCE H(float f) : bits(rille_to_##code(f)) {}                                                             \
    RILLE_FORCE H(double f) : bits(rille_to_##code((float)f)) {}                                                     \
    RILLE_FORCE H(int i) : bits(rille_to_##code((float)i)) {}                                                        \
    RILLE_FORCE H(unsigned i) : bits(rille_to_##code((float)i)) {}                                                   \
    RILLE_FORCE operator float() const { return rille_from_##code(bits); }                                           \
    RILLE_FORCE H& operator+=(H o) { return *this = H((float)*this + (float)o); }                                    \
    RILLE_FORCE H& operator-=(H o) { return *this = H((float)*this - (float)o); }                                    \
    RILLE_FORCE H& operator*=(H o) { return *this = H((float)*this * (float)o); }                                    \
    RILLE_FORCE H& operator/=(H o) { return *this = H((float)*this / (float)o); }                                    \
  };                                                                                                                 \
  struct __attribute__((aligned(4))) H2 { H x, y; };                                                                 \
  RILLE_IN H operator+(H a, H b) { return H((float)a + (float)b); }                                                  \
  RILLE_IN H operator-(H a, H b) { return H((float)a - (float)b); }                                                  \
  RILLE_IN H operator*(H a, H b) { return H((float)a * (float)b); }                                                  \
  RILLE_IN H operator/(H a, H b) { return H((float)a / (float)b); }                                                  \
  RILLE_IN H operator-(H a) { return H(-(float)a); }                                                                 \
  RILLE_IN bool operator<(H a, H b) { return (float)a < (float)b; }                                                  \
  RILLE_IN bool operator>(H a, H b) { return (float)a > (float)b; }                                                  \
  RILLE_IN bool operator<=(H a, H b) { return (float)a <= (float)b; }                                                \
  RILLE_IN bool operator>=(H a, H b) { return (float)a >= (float)b; }                                                \
  RILLE_IN bool operator==(H a, H b) { return (float)a == (float)b; }                                                \
  RILLE_IN bool operator!=(H a, H b) { return (float)a != (float)b; }                                                \
  RILLE_IN H __float2##short_name(float f) { return H(f); }                                                          \
  RILLE_IN H __float2##short_name##_rn(float f) { return H(f); }                                                     \
  RILLE_IN H __double2##short_name(double f) { return H(f); }                                                        \
  RILLE_IN float __##short_name##2float(H h) { return (float)h; }                                                    \
  RILLE_IN H2 __floats2##short_name##2_rn(float x, float y) { return {H(x), H(y)}; }                                 \
  RILLE_IN H __hadd(H a, H b) { return a + b; }                                                                      \
  RILLE_IN H __hsub(H a, H b) { return a - b; }                                                                      \
  RILLE_IN H __hmul(H a, H b) { return a * b; }                                                                      \
  RILLE_IN H __hdiv(H a, H b) { return a / b; }                                                                      \
  RILLE_IN H __hneg(H a) { return -a; }                                                                              \
  RILLE_IN H __habs(H a) { return H(__builtin_fabsf((float)a)); }                                                    \
  RILLE_IN H __hfma(H a, H b, H c) { return H(__builtin_fmaf((float)a, (float)b, (float)c)); }                       \
  RILLE_IN H __hmax(H a, H b) { return H(__builtin_fmaxf((float)a, (float)b)); }                                     \
  RILLE_IN H __hmin(H a, H b) { return H(__builtin_fminf((float)a, (float)b)); }                                     \
  RILLE_IN bool __hgt(H a, H b) { return a > b; }                                                                    \
  RILLE_IN bool __hlt(H a, H b) { return a < b; }                                                                    \
  RILLE_IN bool __heq(H a, H b) { return a == b; }                                                                   \
  RILLE_IN bool __hisnan(H a) { return __builtin_isnan((float)a); }                                                  \
  RILLE_IN H hexp(H a) { return H(expf((float)a)); }                                                                 \
  RILLE_IN H hlog(H a) { return H(logf((float)a)); }                                                                 \
  RILLE_IN H hsqrt(H a) { return H(sqrtf((float)a)); }                                                               \
  RILLE_IN H hrsqrt(H a) { return H(rsqrtf((float)a)); }                                                             \
  RILLE_IN H2 __hadd2(H2 a, H2 b) { return {a.x + b.x, a.y + b.y}; }                                                 \
  RILLE_IN H2 __hmul2(H2 a, H2 b) { return {a.x * b.x, a.y * b.y}; }                                                 \
  RILLE_IN H2 __hfma2(H2 a, H2 b, H2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }                   \
  RILLE_IN float __low2float(H2 v) { return (float)v.x; }                                                            \
  RILLE_IN float __high2float(H2 v) { return (float)v.y; }                                                           \
  RILLE_IN H2 make_##H2(H x, H y) { return {x, y}; }                                                                 \
  RILLE_ATOMIC H atomicAdd(H* p, H v) { RILLE_TOUCH(p); return rille_replace(p, [v](H o) { return o + v; }); }       \
  template <> struct rille_bits_of<H> { typedef unsigned short type; };                                              \
  template <> struct rille_element<H> { static constexpr unsigned of = rille_abi::code, lanes = 1; };                \
  template <> struct rille_element<H2> { static constexpr unsigned of = rille_abi::code, lanes = 2; };

#define RILLE_FORCE __attribute__((always_inline)) inline
// The traits come first: a template may not be specialised after its use.
struct __half;
struct __nv_bfloat16;
RILLE_SMALL_FLOAT(__half, __half2, half, f16)
RILLE_SMALL_FLOAT(__nv_bfloat16, __nv_bfloat162, bfloat16, bf16)
RILLE_IN float2 __half22float2(__half2 v) { return {(float)v.x, (float)v.y}; }
RILLE_IN float2 __bfloat1622float2(__nv_bfloat162 v) { return {(float)v.x, (float)v.y}; }
RILLE_IN __half2 __float22half2_rn(float2 v) { return {__half(v.x), __half(v.y)}; }
RILLE_IN __nv_bfloat162 __float22bfloat162_rn(float2 v) { return {__nv_bfloat16(v.x), __nv_bfloat16(v.y)}; }
RILLE_IN __half2 __half2half2(__half h) { return {h, h}; }
RILLE_IN __half2 __float2half2_rn(float f) { return {__half(f), __half(f)}; }
RILLE_IN __nv_bfloat162 __float2bfloat162_rn(float f) { return {__nv_bfloat16(f), __nv_bfloat16(f)}; }
typedef __half half;
typedef __half2 half2;
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
