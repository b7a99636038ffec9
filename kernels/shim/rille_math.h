// CUDA C++ for a plain C++ compiler, part 3: mathematics, bits, printf and assert. The fast forms (__expf) are the
// ordinary functions here; results differ from a GPU's in the last bits.
#pragma once
#include "warp.h"

extern "C" {
double sin(double); float sinf(float); double cos(double); float cosf(float); double tan(double); float tanf(float);
double asin(double); float asinf(float); double acos(double); float acosf(float); double atan(double);
float atanf(float); double sinh(double); float sinhf(float); double cosh(double); float coshf(float);
double tanh(double); float tanhf(float); double asinh(double); float asinhf(float); double acosh(double);
float acoshf(float); double atanh(double); float atanhf(float); double exp(double); float expf(float);
double exp2(double); float exp2f(float); double exp10(double); float exp10f(float); double expm1(double);
float expm1f(float); double log(double); float logf(float); double log2(double); float log2f(float);
double log10(double); float log10f(float); double log1p(double); float log1pf(float); double sqrt(double);
float sqrtf(float); double cbrt(double); float cbrtf(float); double erf(double); float erff(float);
double erfc(double); float erfcf(float); double tgamma(double); float tgammaf(float); double lgamma(double);
float lgammaf(float); double floor(double); float floorf(float); double ceil(double); float ceilf(float);
double trunc(double); float truncf(float); double round(double); float roundf(float); double rint(double);
float rintf(float); double nearbyint(double); float nearbyintf(float); double fabs(double); float fabsf(float);
double logb(double); float logbf(float); double pow(double, double); float powf(float, float);
double atan2(double, double); float atan2f(float, float); double fmod(double, double); float fmodf(float, float);
double remainder(double, double); float remainderf(float, float); double fmin(double, double);
float fminf(float, float); double fmax(double, double); float fmaxf(float, float); double fdim(double, double);
float fdimf(float, float); double hypot(double, double); float hypotf(float, float); double copysign(double, double);
float copysignf(float, float); double nextafter(double, double); float nextafterf(float, float);
double fma(double, double, double); float fmaf(float, float, float); double ldexp(double, int);
float ldexpf(float, int); double frexp(double, int*); float frexpf(float, int*); double modf(double, double*);
float modff(float, float*); int ilogb(double); int ilogbf(float); long lrint(double); long lrintf(float);
long lround(double); long lroundf(float); void sincos(double, double*, double*); void sincosf(float, float*, float*);
double j0(double); double j1(double);
}

// CUDA uses one name for both precisions.
RILLE_IN float sin(float x) { return __builtin_sinf(x); } RILLE_IN float cos(float x) { return __builtin_cosf(x); }
RILLE_IN float tan(float x) { return __builtin_tanf(x); } RILLE_IN float asin(float x) { return __builtin_asinf(x); }
RILLE_IN float acos(float x) { return __builtin_acosf(x); }
RILLE_IN float atan(float x) { return __builtin_atanf(x); }
RILLE_IN float sinh(float x) { return __builtin_sinhf(x); }
RILLE_IN float cosh(float x) { return __builtin_coshf(x); }
RILLE_IN float tanh(float x) { return __builtin_tanhf(x); }
RILLE_IN float asinh(float x) { return __builtin_asinhf(x); }
RILLE_IN float acosh(float x) { return __builtin_acoshf(x); }
RILLE_IN float atanh(float x) { return __builtin_atanhf(x); }
RILLE_IN float exp(float x) { return __builtin_expf(x); } RILLE_IN float exp2(float x) { return __builtin_exp2f(x); }
RILLE_IN float exp10(float x) { return exp10f(x); }
RILLE_IN float expm1(float x) { return __builtin_expm1f(x); }
RILLE_IN float log(float x) { return __builtin_logf(x); } RILLE_IN float log2(float x) { return __builtin_log2f(x); }
RILLE_IN float log10(float x) { return __builtin_log10f(x); }
RILLE_IN float log1p(float x) { return __builtin_log1pf(x); }
RILLE_IN float sqrt(float x) { return __builtin_sqrtf(x); }
RILLE_IN float cbrt(float x) { return __builtin_cbrtf(x); } RILLE_IN float erf(float x) { return __builtin_erff(x); }
RILLE_IN float erfc(float x) { return __builtin_erfcf(x); }
RILLE_IN float tgamma(float x) { return __builtin_tgammaf(x); }
RILLE_IN float lgamma(float x) { return __builtin_lgammaf(x); }
RILLE_IN float floor(float x) { return __builtin_floorf(x); }
RILLE_IN float ceil(float x) { return __builtin_ceilf(x); }
RILLE_IN float trunc(float x) { return __builtin_truncf(x); }
RILLE_IN float round(float x) { return __builtin_roundf(x); }
RILLE_IN float rint(float x) { return __builtin_rintf(x); }
RILLE_IN float nearbyint(float x) { return __builtin_nearbyintf(x); }
RILLE_IN float fabs(float x) { return __builtin_fabsf(x); }
RILLE_IN float logb(float x) { return __builtin_logbf(x); }
RILLE_IN float pow(float x, float y) { return __builtin_powf(x, y); }
RILLE_IN float atan2(float x, float y) { return __builtin_atan2f(x, y); }
RILLE_IN float fmod(float x, float y) { return __builtin_fmodf(x, y); }
RILLE_IN float remainder(float x, float y) { return __builtin_remainderf(x, y); }
RILLE_IN float fmin(float x, float y) { return __builtin_fminf(x, y); }
RILLE_IN float fmax(float x, float y) { return __builtin_fmaxf(x, y); }
RILLE_IN float fdim(float x, float y) { return __builtin_fdimf(x, y); }
RILLE_IN float hypot(float x, float y) { return __builtin_hypotf(x, y); }
RILLE_IN float copysign(float x, float y) { return __builtin_copysignf(x, y); }
RILLE_IN float nextafter(float x, float y) { return __builtin_nextafterf(x, y); }
RILLE_IN float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
RILLE_IN float ldexp(float x, int n) { return __builtin_ldexpf(x, n); }
RILLE_IN double pow(double x, int n) { return __builtin_pow(x, n); }
RILLE_IN float pow(float x, int n) { return __builtin_powf(x, (float)n); }
RILLE_IN double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
RILLE_IN float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
RILLE_IN float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
RILLE_IN float rcbrtf(float x) { return 1.0f / __builtin_cbrtf(x); }
RILLE_IN float sinpif(float x) { return __builtin_sinf(3.14159265358979f * x); }
RILLE_IN float cospif(float x) { return __builtin_cosf(3.14159265358979f * x); }
RILLE_IN double sinpi(double x) { return __builtin_sin(3.14159265358979323846 * x); }
RILLE_IN double cospi(double x) { return __builtin_cos(3.14159265358979323846 * x); }
RILLE_IN float norm3df(float x, float y, float z) { return __builtin_sqrtf(x * x + y * y + z * z); }
RILLE_IN float rnorm3df(float x, float y, float z) { return 1.0f / norm3df(x, y, z); }
RILLE_IN float normcdff(float x) { return 0.5f * __builtin_erfcf(-x * 0.70710678f); }
RILLE_IN double normcdf(double x) { return 0.5 * __builtin_erfc(-x * 0.70710678118654752); }

#define RILLE_FAST1(name, plain) RILLE_IN float name(float x) { return plain(x); }
RILLE_FAST1(__expf, expf) RILLE_FAST1(__exp10f, exp10f) RILLE_FAST1(__logf, logf) RILLE_FAST1(__log2f, log2f)
RILLE_FAST1(__log10f, log10f) RILLE_FAST1(__sinf, sinf) RILLE_FAST1(__cosf, cosf) RILLE_FAST1(__tanf, tanf)
RILLE_FAST1(__tanhf, tanhf) RILLE_FAST1(__fsqrt_rn, __builtin_sqrtf) RILLE_FAST1(__frsqrt_rn, rsqrtf)
RILLE_IN float __frcp_rn(float x) { return 1.0f / x; }
RILLE_IN float __powf(float x, float y) { return powf(x, y); }
RILLE_IN float __fdividef(float x, float y) { return x / y; }
RILLE_IN float fdividef(float x, float y) { return x / y; }
RILLE_IN void __sincosf(float x, float* s, float* c) { *s = sinf(x); *c = cosf(x); }
RILLE_IN float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
RILLE_IN double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }
RILLE_IN float __fadd_rn(float x, float y) { return x + y; }
RILLE_IN float __fsub_rn(float x, float y) { return x - y; }
RILLE_IN float __fmul_rn(float x, float y) { return x * y; }
RILLE_IN float __fdiv_rn(float x, float y) { return x / y; }
RILLE_IN double __dadd_rn(double x, double y) { return x + y; }
RILLE_IN double __dmul_rn(double x, double y) { return x * y; }
RILLE_IN double __ddiv_rn(double x, double y) { return x / y; }
RILLE_IN float __saturatef(float x) { return x < 0 ? 0.0f : x > 1 ? 1.0f : x == x ? x : 0.0f; }

#define RILLE_MINMAX(T)                                       \
  RILLE_IN T min(T a, T b) { return b < a ? b : a; }          \
  RILLE_IN T max(T a, T b) { return a < b ? b : a; }
RILLE_MINMAX(int) RILLE_MINMAX(unsigned) RILLE_MINMAX(long) RILLE_MINMAX(unsigned long) RILLE_MINMAX(long long)
RILLE_MINMAX(unsigned long long)
RILLE_IN unsigned min(int a, unsigned b) { return min((unsigned)a, b); }
RILLE_IN unsigned min(unsigned a, int b) { return min(a, (unsigned)b); }
RILLE_IN unsigned max(int a, unsigned b) { return max((unsigned)a, b); }
RILLE_IN unsigned max(unsigned a, int b) { return max(a, (unsigned)b); }
RILLE_IN float min(float a, float b) { return __builtin_fminf(a, b); }
RILLE_IN float max(float a, float b) { return __builtin_fmaxf(a, b); }
RILLE_IN double min(double a, double b) { return __builtin_fmin(a, b); }
RILLE_IN double max(double a, double b) { return __builtin_fmax(a, b); }
RILLE_IN int abs(int x) { return x < 0 ? -x : x; }
RILLE_IN long abs(long x) { return x < 0 ? -x : x; }
RILLE_IN long long abs(long long x) { return x < 0 ? -x : x; }
RILLE_IN long long llabs(long long x) { return x < 0 ? -x : x; }
RILLE_IN float abs(float x) { return __builtin_fabsf(x); }
RILLE_IN double abs(double x) { return __builtin_fabs(x); }
template <class T> RILLE_IN bool isnan(T x) { return __builtin_isnan(x); }
template <class T> RILLE_IN bool isinf(T x) { return __builtin_isinf(x); }
template <class T> RILLE_IN bool isfinite(T x) { return __builtin_isfinite(x); }
template <class T> RILLE_IN bool signbit(T x) { return __builtin_signbit(x); }

RILLE_IN int __popc(unsigned x) { return __builtin_popcount(x); }
RILLE_IN int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
RILLE_IN int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
RILLE_IN int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
RILLE_IN int __ffs(int x) { return __builtin_ffs(x); }
RILLE_IN int __ffsll(long long x) { return __builtin_ffsll(x); }
RILLE_IN unsigned __brev(unsigned x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  return __builtin_bswap32(x);
}
RILLE_IN int __mulhi(int a, int b) { return (int)((long long)a * b >> 32); }
RILLE_IN unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((unsigned long long)a * b >> 32); }
RILLE_IN unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return (unsigned long long)((unsigned __int128)a * b >> 64);
}
RILLE_IN int __mul24(int a, int b) { return a * b; }
RILLE_IN unsigned __umul24(unsigned a, unsigned b) { return a * b; }
RILLE_IN unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned s) {
  return (unsigned)(((unsigned long long)hi << 32 | lo) << (s & 31) >> 32);
}
RILLE_IN unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned s) {
  return (unsigned)(((unsigned long long)hi << 32 | lo) >> (s & 31));
}
#define RILLE_CAST(name, To, From) RILLE_IN To name(From x) { return rille_from_bits<To>(rille_to_bits(x)); }
RILLE_CAST(__float_as_int, int, float) RILLE_CAST(__float_as_uint, unsigned, float)
RILLE_CAST(__int_as_float, float, int) RILLE_CAST(__uint_as_float, float, unsigned)
RILLE_CAST(__double_as_longlong, long long, double) RILLE_CAST(__longlong_as_double, double, long long)
RILLE_IN int __float2int_rn(float x) { return (int)__builtin_rintf(x); }
RILLE_IN int __float2int_rz(float x) { return (int)x; }
RILLE_IN int __float2int_rd(float x) { return (int)__builtin_floorf(x); }
RILLE_IN int __float2int_ru(float x) { return (int)__builtin_ceilf(x); }
RILLE_IN unsigned __float2uint_rn(float x) { return (unsigned)__builtin_rintf(x); }
RILLE_IN unsigned __float2uint_rz(float x) { return (unsigned)x; }
RILLE_IN float __int2float_rn(int x) { return (float)x; }
RILLE_IN float __uint2float_rn(unsigned x) { return (float)x; }
RILLE_IN float __double2float_rn(double x) { return (float)x; }

template <class T> RILLE_IN T __ldg(const T* p) { return *p; }
template <class T> RILLE_IN T __ldcs(const T* p) { return *p; }
template <class T> RILLE_IN T __ldcg(const T* p) { return *p; }
template <class T> RILLE_IN void __stcs(T* p, T v) { *p = v; }
template <class T> RILLE_IN void __stcg(T* p, T v) { *p = v; }
RILLE_IN void __nanosleep(unsigned) {}
RILLE_IN long long clock64() { return (long long)__builtin_ia32_rdtsc(); }
RILLE_IN int clock() { return (int)__builtin_ia32_rdtsc(); }

extern "C" int vsnprintf(char*, size_t, const char*, __builtin_va_list);
__attribute__((noinline, unused, format(printf, 1, 2))) RILLE_UNWATCHED static int rille_print(const char* format,
                                                                                               ...) {
  char text[1024];
  __builtin_va_list list;
  __builtin_va_start(list, format);
  int n = vsnprintf(text, sizeof text, format, list);
  __builtin_va_end(list);
  if (n >= (int)sizeof text) n = (int)sizeof text - 1;
  if (n > 0) rille_worker->say(rille_worker, text, (unsigned)n);
  return n;
}
#define printf rille_print
__attribute__((noinline, unused)) RILLE_UNWATCHED static void rille_fail(const char* text, const char* file,
                                                                         unsigned line) {
  rille_worker->failed(rille_worker, rille_thread(), text, file, line);
}
#define assert(condition) ((condition) ? (void)0 : rille_fail("assertion failed: " #condition, __FILE__, __LINE__))
#define __trap() rille_fail("__trap()", __FILE__, __LINE__)
#define __brkpt() (void)0

#define NAN __builtin_nanf("")
#define INFINITY __builtin_inff()
#define CUDART_INF_F __builtin_inff()
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_INF __builtin_inf()
#define CUDART_PI_F 3.141592654f
#define CUDART_PI 3.1415926535897931
#define M_PI 3.14159265358979323846
#define M_E 2.7182818284590452354
#define M_SQRT2 1.41421356237309504880
#define FLT_MAX __FLT_MAX__
#define FLT_MIN __FLT_MIN__
#define FLT_EPSILON __FLT_EPSILON__
#define DBL_MAX __DBL_MAX__
#define DBL_MIN __DBL_MIN__
#define DBL_EPSILON __DBL_EPSILON__
#define INT_MAX __INT_MAX__
#define INT_MIN (-__INT_MAX__ - 1)
#define UINT_MAX 0xffffffffu
#define LLONG_MAX __LONG_LONG_MAX__
#define LLONG_MIN (-__LONG_LONG_MAX__ - 1)
#define ULLONG_MAX 0xffffffffffffffffull
#define CHAR_BIT 8
