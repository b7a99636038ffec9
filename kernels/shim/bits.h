// CUDA C++ for a plain C++ compiler, part 4: integer functions, rounding casts, memory functions, and mathematical
// functions that the C library lacks.
#pragma once
#include "rille_math.h"

// -- memory. Checked mode reports each access itself, because the compiler does not instrument these functions.
#ifdef RILLE_CHECKED
RILLE_UNWATCHED __attribute__((noinline, unused)) static void rille_look(const void* at, size_t bytes, unsigned kind,
                                                                         const void* site) {
  for (size_t i = 0; i < bytes; ++i) {
    rille_worker->access(rille_worker, rille_thread(), (const char*)at + i, 1, kind, site);
  }
}
RILLE_UNWATCHED __attribute__((noinline, unused)) static void* rille_memset(void* to, int value, size_t bytes) {
  rille_look(to, bytes, rille_abi::access_write, RILLE_SITE);
  return __builtin_memset(to, value, bytes);
}
RILLE_UNWATCHED __attribute__((noinline, unused)) static void* rille_memcpy(void* to, const void* from, size_t bytes) {
  rille_look(from, bytes, rille_abi::access_read, RILLE_SITE);
  rille_look(to, bytes, rille_abi::access_write, RILLE_SITE);
  return __builtin_memmove(to, from, bytes);
}
#define memset rille_memset
#define memcpy rille_memcpy
#else
extern "C" void* memset(void*, int, size_t);
extern "C" void* memcpy(void*, const void*, size_t);
#endif
template <class T> RILLE_IN T __ldca(const T* p) { return *p; }
template <class T> RILLE_IN T __ldlu(const T* p) { return *p; }
template <class T> RILLE_IN T __ldcv(const T* p) { return *p; }
template <class T> RILLE_IN void __stwb(T* p, T v) { *p = v; }
template <class T> RILLE_IN void __stwt(T* p, T v) { *p = v; }

// -- bits
RILLE_IN unsigned long long __brevll(unsigned long long x) {
  return (unsigned long long)__brev((unsigned)x) << 32 | __brev((unsigned)(x >> 32));
}
RILLE_IN unsigned __byte_perm(unsigned x, unsigned y, unsigned choice) {
  const unsigned long long bytes = (unsigned long long)y << 32 | x;
  unsigned r = 0;
  for (int i = 0; i < 4; ++i) r |= (unsigned)(bytes >> 8 * (choice >> 4 * i & 7) & 0xff) << 8 * i;
  return r;
}
RILLE_IN unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned s) {
  return s < 32 ? __funnelshift_l(lo, hi, s) : lo;
}
RILLE_IN unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned s) {
  return s < 32 ? __funnelshift_r(lo, hi, s) : hi;
}
RILLE_IN unsigned __sad(int x, int y, unsigned z) { return (x < y ? (unsigned)y - (unsigned)x : (unsigned)x - y) + z; }
RILLE_IN unsigned __usad(unsigned x, unsigned y, unsigned z) { return (x < y ? y - x : x - y) + z; }
RILLE_IN int __hadd(int x, int y) { return (int)(((long long)x + y) >> 1); }
RILLE_IN int __rhadd(int x, int y) { return (int)(((long long)x + y + 1) >> 1); }
RILLE_IN unsigned __uhadd(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x + y) >> 1); }
RILLE_IN unsigned __urhadd(unsigned x, unsigned y) { return (unsigned)(((unsigned long long)x + y + 1) >> 1); }
RILLE_IN long long __mul64hi(long long x, long long y) { return (long long)((__int128)x * y >> 64); }
RILLE_IN int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 32; i += 8) c += (int)(signed char)(a >> i) * (signed char)(b >> i);
  return c;
}
RILLE_IN unsigned __dp4a(unsigned a, unsigned b, unsigned c) {
  for (int i = 0; i < 32; i += 8) c += (a >> i & 0xffu) * (b >> i & 0xffu);
  return c;
}
RILLE_IN long labs(long x) { return x < 0 ? -x : x; }
#define RILLE_MIXED_MINMAX(A, B, C)                                  \
  RILLE_IN C min(A a, B b) { return min((C)a, (C)b); }               \
  RILLE_IN C max(A a, B b) { return max((C)a, (C)b); }
RILLE_MIXED_MINMAX(long long, unsigned long long, unsigned long long)
RILLE_MIXED_MINMAX(unsigned long long, long long, unsigned long long)
RILLE_MIXED_MINMAX(long, unsigned long, unsigned long) RILLE_MIXED_MINMAX(unsigned long, long, unsigned long)
RILLE_MIXED_MINMAX(float, double, double) RILLE_MIXED_MINMAX(double, float, double)

// -- casts: _rn rounds to nearest even, _rz to zero, _rd down, _ru up
#define RILLE_CASTS(from, From, to, To, suffix)                                                       \
  RILLE_IN To __##from##2##to##_rn(From x) { return (To)__builtin_rint##suffix(x); }                  \
  RILLE_IN To __##from##2##to##_rz(From x) { return (To)x; }                                          \
  RILLE_IN To __##from##2##to##_rd(From x) { return (To)__builtin_floor##suffix(x); }                 \
  RILLE_IN To __##from##2##to##_ru(From x) { return (To)__builtin_ceil##suffix(x); }
RILLE_CASTS(float, float, ll, long long, f) RILLE_CASTS(float, float, ull, unsigned long long, f)
RILLE_CASTS(double, double, int, int, ) RILLE_CASTS(double, double, uint, unsigned, )
RILLE_CASTS(double, double, ll, long long, ) RILLE_CASTS(double, double, ull, unsigned long long, )
RILLE_IN unsigned __float2uint_rd(float x) { return (unsigned)__builtin_floorf(x); }
RILLE_IN unsigned __float2uint_ru(float x) { return (unsigned)__builtin_ceilf(x); }
RILLE_IN double __int2double_rn(int x) { return x; }
RILLE_IN double __uint2double_rn(unsigned x) { return x; }
RILLE_IN double __ll2double_rn(long long x) { return (double)x; }
RILLE_IN double __ull2double_rn(unsigned long long x) { return (double)x; }
RILLE_IN float __ll2float_rn(long long x) { return (float)x; }
RILLE_IN float __ull2float_rn(unsigned long long x) { return (float)x; }
RILLE_IN int __double2hiint(double x) { return (int)(__double_as_longlong(x) >> 32); }
RILLE_IN int __double2loint(double x) { return (int)__double_as_longlong(x); }
RILLE_IN double __hiloint2double(int hi, int lo) {
  return __longlong_as_double((long long)((unsigned long long)(unsigned)hi << 32 | (unsigned)lo));
}

// -- mathematics
extern "C" {
float j0f(float); float j1f(float); double y0(double); double y1(double); float y0f(float); float y1f(float);
float jnf(int, float); float ynf(int, float);
double jn(int, double); double yn(int, double); double scalbn(double, int); float scalbnf(float, int);
long long llrint(double); long long llrintf(float); long long llround(double); long long llroundf(float);
double nan(const char*); float nanf(const char*); double remquo(double, double, int*);
float remquof(float, float, int*);
}
RILLE_IN double rcbrt(double x) { return 1.0 / __builtin_cbrt(x); }
RILLE_IN double rhypot(double x, double y) { return 1.0 / __builtin_hypot(x, y); }
RILLE_IN float rhypotf(float x, float y) { return 1.0f / __builtin_hypotf(x, y); }
RILLE_IN double norm3d(double x, double y, double z) { return __builtin_sqrt(x * x + y * y + z * z); }
RILLE_IN double rnorm3d(double x, double y, double z) { return 1.0 / norm3d(x, y, z); }
RILLE_IN float norm4df(float x, float y, float z, float w) { return __builtin_sqrtf(x * x + y * y + z * z + w * w); }
RILLE_IN float rnorm4df(float x, float y, float z, float w) { return 1.0f / norm4df(x, y, z, w); }
RILLE_IN void sincospif(float x, float* s, float* c) { *s = sinpif(x); *c = cospif(x); }
RILLE_IN void sincospi(double x, double* s, double* c) { *s = sinpi(x); *c = cospi(x); }
RILLE_IN double __dsub_rn(double x, double y) { return x - y; }
RILLE_IN double __dsqrt_rn(double x) { return __builtin_sqrt(x); }
RILLE_IN double __drcp_rn(double x) { return 1.0 / x; }
// Newton's steps, which double the digits each time, from Winitzki's approximation (2008).
__attribute__((noinline, unused)) static double erfinv(double x) {
  if (!(x > -1.0 && x < 1.0)) return x == 1.0 ? __builtin_inf() : x == -1.0 ? -__builtin_inf() : __builtin_nan("");
  const double l = __builtin_log1p(-x * x), m = 4.330746750799873 + l / 2;
  double y = __builtin_copysign(__builtin_sqrt(__builtin_sqrt(m * m - l / 0.147) - m), x);
  for (int i = 0; i < 4 && y != 0.0; ++i) {
    y -= (__builtin_erf(y) - x) / (1.1283791670955126 * __builtin_exp(-y * y));
  }
  return y;
}
RILLE_IN float erfinvf(float x) { return (float)erfinv(x); }
RILLE_IN double normcdfinv(double p) { return 1.4142135623730951 * erfinv(2 * p - 1); }
RILLE_IN float normcdfinvf(float p) { return (float)normcdfinv(p); }

#ifndef __clang__
#define __builtin_assume(condition) ((condition) ? (void)0 : __builtin_unreachable())
#endif
#define __prof_trigger(n) (void)0
#define NULL __null
#define HUGE_VALF __builtin_inff()
#define HUGE_VAL __builtin_inf()
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT1_2 0.70710678118654752440
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define SCHAR_MAX 127
#define SCHAR_MIN (-128)
#define UCHAR_MAX 255
#define CHAR_MAX 127
#define CHAR_MIN (-128)
#define SHRT_MAX 32767
#define SHRT_MIN (-32768)
#define USHRT_MAX 65535
#define LONG_MAX __LONG_MAX__
#define LONG_MIN (-__LONG_MAX__ - 1l)
#define ULONG_MAX 0xfffffffffffffffful
#define INT8_MAX 127
#define INT8_MIN (-128)
#define UINT8_MAX 255
#define INT16_MAX 32767
#define INT16_MIN (-32768)
#define UINT16_MAX 65535
#define INT32_MAX INT_MAX
#define INT32_MIN INT_MIN
#define UINT32_MAX UINT_MAX
#define INT64_MAX LONG_MAX
#define INT64_MIN LONG_MIN
#define UINT64_MAX ULONG_MAX
#define SIZE_MAX ULONG_MAX
