// CUDA C++ for a plain C++ compiler, part 5: __half and __nv_bfloat16. Arithmetic is done in float and rounded once to
// nearest, ties to even, as on the GPU.
//
// The same text serves as cuda_fp16.h and cuda_bf16.h for NVRTC if the toolkit's headers are missing
// (runtime/compute/device/kernel_headers.cpp); only the conversions differ. The guard allows including it twice.
#pragma once
#ifndef RILLE_HALF
#define RILLE_HALF

#ifndef __CUDACC_RTC__
#include "bits.h"
#define RILLE_FORCE __attribute__((always_inline)) inline
RILLE_IN unsigned short rille_to_bf16(float f) {
  const unsigned u = __float_as_uint(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return (unsigned short)0x7fff;
  return (unsigned short)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
}
RILLE_IN unsigned short rille_to_f16(float f) {
#ifdef __FLT16_MAX__
  const _Float16 h = (_Float16)f;
  unsigned short bits;
  __builtin_memcpy(&bits, &h, 2);
  return bits;
#else
  const unsigned u = __float_as_uint(f), sign = u >> 16 & 0x8000u, a = u & 0x7fffffffu;
  if (a > 0x7f800000u) return (unsigned short)0x7fff;
  if (a >= 0x477ff000u) return (unsigned short)(sign | 0x7c00u);          // rounds to infinity: above 65504
  if (a < 0x38800000u) {                                                  // subnormal: the addition rounds
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
// The types of the traits come first, because a template may not be specialised after its use.
struct __half;
struct __half2;
struct __nv_bfloat16;
struct __nv_bfloat162;
#define RILLE_SMALL_TRAITS(H, H2, code)                                                                              \
  template <> struct rille_bits_of<H> { typedef unsigned short type; };                                              \
  template <> struct rille_element<H> { static constexpr unsigned of = rille_abi::code, lanes = 1; };                \
  template <> struct rille_element<H2> { static constexpr unsigned of = rille_abi::code, lanes = 2; };
RILLE_SMALL_TRAITS(__half, __half2, f16)
RILLE_SMALL_TRAITS(__nv_bfloat16, __nv_bfloat162, bf16)
#define RILLE_SMALL_SIDE(H, H2)                                                                                      \
  RILLE_ATOMIC H atomicAdd(H* p, H v) { RILLE_TOUCH(p); return rille_replace(p, [v](H o) { return o + v; }); }
#else
#define RILLE_IN static __device__ __forceinline__
#define RILLE_FORCE __device__ __forceinline__
RILLE_IN unsigned short rille_to_bf16(float f) {
#if __CUDA_ARCH__ >= 800
  unsigned short bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(f));
  return bits;
#else
  const unsigned u = __float_as_uint(f);
  if ((u & 0x7fffffffu) > 0x7f800000u) return (unsigned short)0x7fff;
  return (unsigned short)((u + 0x7fffu + (u >> 16 & 1)) >> 16);
#endif
}
RILLE_IN unsigned short rille_to_f16(float f) {
  unsigned short bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(f));
  return bits;
}
RILLE_IN float rille_from_f16(unsigned short bits) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(bits));
  return f;
}
// An atomic on a pair changes one half after the other.
#define RILLE_SMALL_SIDE(H, H2)                                                                                      \
  RILLE_IN H rille_bits_##H(unsigned short bits) { H h; h.bits = bits; return h; }                                   \
  RILLE_IN H atomicAdd(H* p, H v) {                                                                                  \
    unsigned short* const at = (unsigned short*)p;                                                                   \
    unsigned short old = *at, seen;                                                                                  \
    do {                                                                                                             \
      seen = old;                                                                                                    \
      old = atomicCAS(at, seen, (rille_bits_##H(seen) + v).bits);                                                    \
    } while (old != seen);                                                                                           \
    return rille_bits_##H(old);                                                                                      \
  }                                                                                                                  \
  RILLE_IN unsigned rille_pack(H2 v) { return v.x.bits | (unsigned)v.y.bits << 16; }                                 \
  RILLE_IN void rille_unpack(unsigned u, H& h) { h.bits = (unsigned short)u; }                                       \
  RILLE_IN void rille_unpack(unsigned u, H2& v) {                                                                    \
    v.x.bits = (unsigned short)u;                                                                                    \
    v.y.bits = (unsigned short)(u >> 16);                                                                            \
  }                                                                                                                  \
  RILLE_IN unsigned rille_pack(H h) { return h.bits; }                                                               \
  RILLE_SMALL_MOVES(H, unsigned short) RILLE_SMALL_MOVES(H2, unsigned)
#define RILLE_SMALL_SHUFFLE(T, name, From)                                                                           \
  RILLE_IN T name(unsigned mask, T v, From from, int width = 32) {                                                   \
    T r;                                                                                                             \
    rille_unpack(name(mask, rille_pack(v), from, width), r);                                                         \
    return r;                                                                                                        \
  }
#define RILLE_SMALL_LOAD(T, name, Bits) \
  RILLE_IN T name(const T* p) { T r; rille_unpack(name((const Bits*)p), r); return r; }
#define RILLE_SMALL_MOVES(T, Bits)                                                                                   \
  RILLE_SMALL_SHUFFLE(T, __shfl_sync, int) RILLE_SMALL_SHUFFLE(T, __shfl_xor_sync, int)                              \
  RILLE_SMALL_SHUFFLE(T, __shfl_up_sync, unsigned) RILLE_SMALL_SHUFFLE(T, __shfl_down_sync, unsigned)                \
  RILLE_SMALL_LOAD(T, __ldg, Bits) RILLE_SMALL_LOAD(T, __ldcs, Bits) RILLE_SMALL_LOAD(T, __ldcg, Bits)
#endif
RILLE_IN float rille_from_bf16(unsigned short b) { return __uint_as_float((unsigned)b << 16); }

// Plain bits without a default constructor, so that the types may be in shared memory and in unions.
#define RILLE_SMALL_FROM(H, code, T) \
  RILLE_FORCE H(T v) : bits(rille_to_##code((float)v)) {}
#define RILLE_SMALL_CHANGE(H, op) \
  RILLE_FORCE H& operator op##=(H o) { return *this = H((float)*this op (float)o); }
#define RILLE_SMALL_PAIR_CHANGE(H2, op) \
  RILLE_FORCE H2& operator op##=(H2 o) { x op##= o.x; y op##= o.y; return *this; }
#define RILLE_SMALL_OPERATOR(H, H2, op)                                                                              \
  RILLE_IN H operator op(H a, H b) { return H((float)a op (float)b); }                                               \
  RILLE_IN H2 operator op(H2 a, H2 b) { return H2(a.x op b.x, a.y op b.y); }
#define RILLE_SMALL_TEST(H, op, name)                                                                                \
  RILLE_IN bool operator op(H a, H b) { return (float)a op (float)b; }                                               \
  RILLE_IN bool name(H a, H b) { return (float)a op (float)b; }
#define RILLE_SMALL_FUNCTION(H, H2, name, pair, f)                                                                   \
  RILLE_IN H name(H a) { return H(f((float)a)); }                                                                    \
  RILLE_IN H2 pair(H2 a) { return H2(H(f((float)a.x)), H(f((float)a.y))); }
#define RILLE_SMALL_TWO(H, H2, name, pair, expression)                                                               \
  RILLE_IN H name(H a, H b) { return H(expression); }                                                                \
  RILLE_IN H2 pair(H2 a, H2 b) { return H2(name(a.x, b.x), name(a.y, b.y)); }
#define RILLE_SMALL_FLOAT(H, H2, short_name, code)                                                                   \
  struct H {                                                                                                         \
    unsigned short bits;                                                                                             \
    H() = default;                                                                                                   \
    RILLE_SMALL_FROM(H, code, float) RILLE_SMALL_FROM(H, code, double) RILLE_SMALL_FROM(H, code, short)              \
    RILLE_SMALL_FROM(H, code, unsigned short) RILLE_SMALL_FROM(H, code, int) RILLE_SMALL_FROM(H, code, unsigned)     \
    RILLE_SMALL_FROM(H, code, long) RILLE_SMALL_FROM(H, code, unsigned long)                                         \
    RILLE_SMALL_FROM(H, code, long long) RILLE_SMALL_FROM(H, code, unsigned long long)                               \
    RILLE_FORCE operator float() const { return rille_from_##code(bits); }                                           \
    RILLE_SMALL_CHANGE(H, +) RILLE_SMALL_CHANGE(H, -) RILLE_SMALL_CHANGE(H, *) RILLE_SMALL_CHANGE(H, /)              \
    RILLE_FORCE H& operator++() { return *this += H(1.0f); }                                                         \
    RILLE_FORCE H& operator--() { return *this -= H(1.0f); }                                                         \
    RILLE_FORCE H operator++(int) { const H old = *this; ++*this; return old; }                                      \
    RILLE_FORCE H operator--(int) { const H old = *this; --*this; return old; }                                      \
  };                                                                                                                 \
  struct __attribute__((aligned(4))) H2 {                                                                            \
    H x, y;                                                                                                          \
    H2() = default;                                                                                                  \
    RILLE_FORCE H2(H a, H b) : x(a), y(b) {}                                                                         \
    RILLE_SMALL_PAIR_CHANGE(H2, +) RILLE_SMALL_PAIR_CHANGE(H2, -) RILLE_SMALL_PAIR_CHANGE(H2, *)                     \
    RILLE_SMALL_PAIR_CHANGE(H2, /)                                                                                   \
  };                                                                                                                 \
  RILLE_SMALL_OPERATOR(H, H2, +) RILLE_SMALL_OPERATOR(H, H2, -) RILLE_SMALL_OPERATOR(H, H2, *)                       \
  RILLE_SMALL_OPERATOR(H, H2, /)                                                                                     \
  RILLE_IN H operator-(H a) { return H(-(float)a); }                                                                 \
  RILLE_IN H2 operator-(H2 a) { return H2(-a.x, -a.y); }                                                             \
  RILLE_SMALL_TEST(H, <, __hlt) RILLE_SMALL_TEST(H, >, __hgt) RILLE_SMALL_TEST(H, <=, __hle)                         \
  RILLE_SMALL_TEST(H, >=, __hge) RILLE_SMALL_TEST(H, ==, __heq) RILLE_SMALL_TEST(H, !=, __hne)                       \
  RILLE_IN bool __hisnan(H a) { return (float)a != (float)a; }                                                       \
  RILLE_IN int __hisinf(H a) { const float f = (float)a; return f == f && f - f != 0.0f ? (f > 0 ? 1 : -1) : 0; }    \
  RILLE_IN H __float2##short_name(float f) { return H(f); }                                                          \
  RILLE_IN H __float2##short_name##_rn(float f) { return H(f); }                                                     \
  RILLE_IN H __float2##short_name##_rz(float f) {                                                                    \
    H h(f);                                                                                                          \
    if (fabsf((float)h) > fabsf(f)) --h.bits;                                                                        \
    return h;                                                                                                        \
  }                                                                                                                  \
  RILLE_IN H __double2##short_name(double f) { return H(f); }                                                        \
  RILLE_IN H __int2##short_name##_rn(int i) { return H(i); }                                                         \
  RILLE_IN H __uint2##short_name##_rn(unsigned i) { return H(i); }                                                   \
  RILLE_IN float __##short_name##2float(H h) { return (float)h; }                                                    \
  RILLE_IN int __##short_name##2int_rn(H h) { return __float2int_rn((float)h); }                                     \
  RILLE_IN int __##short_name##2int_rz(H h) { return __float2int_rz((float)h); }                                     \
  RILLE_IN unsigned __##short_name##2uint_rn(H h) { return __float2uint_rn((float)h); }                              \
  RILLE_IN unsigned __##short_name##2uint_rz(H h) { return __float2uint_rz((float)h); }                              \
  RILLE_IN unsigned short __##short_name##_as_ushort(H h) { return h.bits; }                                         \
  RILLE_IN short __##short_name##_as_short(H h) { return (short)h.bits; }                                            \
  RILLE_IN H __ushort_as_##short_name(unsigned short bits) { H h; h.bits = bits; return h; }                         \
  RILLE_IN H __short_as_##short_name(short bits) { H h; h.bits = (unsigned short)bits; return h; }                   \
  RILLE_SMALL_TWO(H, H2, __hadd, __hadd2, (float)a + (float)b)                                                       \
  RILLE_SMALL_TWO(H, H2, __hsub, __hsub2, (float)a - (float)b)                                                       \
  RILLE_SMALL_TWO(H, H2, __hmul, __hmul2, (float)a * (float)b)                                                       \
  RILLE_SMALL_TWO(H, H2, __hdiv, __h2div, (float)a / (float)b)                                                       \
  RILLE_SMALL_TWO(H, H2, __hmax, __hmax2, fmaxf((float)a, (float)b))                                                 \
  RILLE_SMALL_TWO(H, H2, __hmin, __hmin2, fminf((float)a, (float)b))                                                 \
  RILLE_SMALL_TWO(H, H2, __hmax_nan, __hmax2_nan, (a < b || __hisnan(b)) && !__hisnan(a) ? (float)b : (float)a)      \
  RILLE_SMALL_TWO(H, H2, __hmin_nan, __hmin2_nan, (b < a || __hisnan(b)) && !__hisnan(a) ? (float)b : (float)a)      \
  RILLE_IN H __hfma(H a, H b, H c) { return H(fmaf((float)a, (float)b, (float)c)); }                                 \
  RILLE_IN H2 __hfma2(H2 a, H2 b, H2 c) { return H2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)); }                 \
  RILLE_SMALL_FUNCTION(H, H2, __hneg, __hneg2, -) RILLE_SMALL_FUNCTION(H, H2, __habs, __habs2, fabsf)                \
  RILLE_SMALL_FUNCTION(H, H2, hexp, h2exp, expf) RILLE_SMALL_FUNCTION(H, H2, hexp2, h2exp2, exp2f)                   \
  RILLE_SMALL_FUNCTION(H, H2, hexp10, h2exp10, exp10f) RILLE_SMALL_FUNCTION(H, H2, hlog, h2log, logf)                \
  RILLE_SMALL_FUNCTION(H, H2, hlog2, h2log2, log2f) RILLE_SMALL_FUNCTION(H, H2, hlog10, h2log10, log10f)             \
  RILLE_SMALL_FUNCTION(H, H2, hsqrt, h2sqrt, sqrtf) RILLE_SMALL_FUNCTION(H, H2, hrsqrt, h2rsqrt, rsqrtf)             \
  RILLE_SMALL_FUNCTION(H, H2, hrcp, h2rcp, 1.0f /) RILLE_SMALL_FUNCTION(H, H2, hsin, h2sin, sinf)                    \
  RILLE_SMALL_FUNCTION(H, H2, hcos, h2cos, cosf) RILLE_SMALL_FUNCTION(H, H2, htanh, h2tanh, tanhf)                   \
  RILLE_SMALL_FUNCTION(H, H2, hfloor, h2floor, floorf) RILLE_SMALL_FUNCTION(H, H2, hceil, h2ceil, ceilf)             \
  RILLE_SMALL_FUNCTION(H, H2, htrunc, h2trunc, truncf) RILLE_SMALL_FUNCTION(H, H2, hrint, h2rint, rintf)             \
  RILLE_IN H2 __floats2##short_name##2_rn(float x, float y) { return H2(H(x), H(y)); }                               \
  RILLE_IN H2 __float2##short_name##2_rn(float f) { return H2(H(f), H(f)); }                                         \
  RILLE_IN H2 __float22##short_name##2_rn(float2 v) { return H2(H(v.x), H(v.y)); }                                   \
  RILLE_IN float2 __##short_name##22float2(H2 v) { return make_float2((float)v.x, (float)v.y); }                     \
  RILLE_IN H2 __##short_name##2##short_name##2(H h) { return H2(h, h); }                                             \
  RILLE_IN H2 __halves2##short_name##2(H x, H y) { return H2(x, y); }                                                \
  RILLE_IN H2 make_##short_name##2(H x, H y) { return H2(x, y); }                                                    \
  RILLE_IN H __low2##short_name(H2 v) { return v.x; }                                                                \
  RILLE_IN H __high2##short_name(H2 v) { return v.y; }                                                               \
  RILLE_IN float __low2float(H2 v) { return (float)v.x; }                                                            \
  RILLE_IN float __high2float(H2 v) { return (float)v.y; }                                                           \
  RILLE_IN bool __hbeq2(H2 a, H2 b) { return a.x == b.x && a.y == b.y; }                                             \
  RILLE_SMALL_SIDE(H, H2)                                                                                            \
  RILLE_IN H2 atomicAdd(H2* p, H2 v) { return H2(atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y)); }

RILLE_SMALL_FLOAT(__half, __half2, half, f16)
RILLE_SMALL_FLOAT(__nv_bfloat16, __nv_bfloat162, bfloat16, bf16)
typedef __half half;
typedef __half2 half2;
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;
#endif
