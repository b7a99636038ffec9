// Conversions between f32 and f16 or bf16, rounding to nearest even, written so that loops over them vectorize.
#pragma once

#include <stdint.h>
#include <string.h>

#include "kernels/call.hpp"
#include "kernels/vecmath.hpp"

namespace rille::kernels::RILLE_ISA {

RILLE_INLINE uint32_t float_to_bits(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}

RILLE_INLINE float from_bf16(uint16_t h) { return bits_to_float(int32_t(uint32_t(h) << 16)); }
RILLE_INLINE uint16_t to_bf16(float f) {
  const uint32_t u = float_to_bits(f), rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
  return uint16_t(f != f ? (u >> 16) | 0x40 : rounded);
}

// The exponent biases differ by 112; multiplying by 2^112 also normalizes f16's subnormal numbers.
RILLE_INLINE float from_f16(uint16_t h) {
  const uint32_t sign = uint32_t(h & 0x8000u) << 16, rest = uint32_t(h & 0x7fffu) << 13;
  const uint32_t finite = float_to_bits(bits_to_float(int32_t(rest)) * 0x1p112f);
  return bits_to_float(int32_t(sign | (rest >= 0x0f800000u ? rest | 0x7f800000u : finite)));
}
RILLE_INLINE uint16_t to_f16(float f) {
  const uint32_t u = float_to_bits(f), sign = u & 0x80000000u, a = u ^ sign;
  const uint32_t normal = (a + 0xc8000fffu + ((a >> 13) & 1)) >> 13;  // bias 127 to 15, plus half a unit for rounding
  const float shifted = bits_to_float(int32_t(a)) + 0.5f;             // below 2^-14 the addition rounds
  const uint32_t small = float_to_bits(shifted) - 0x3f000000u;
  const uint32_t large = a > 0x7f800000u ? 0x7e00u : 0x7c00u;
  return uint16_t((sign >> 16) | (a >= 0x47800000u ? large : a < 0x38800000u ? small : normal));
}

// Widens n f16 or bf16 elements of stride `s` to f32.
static inline void widen_row(DType t, const uint16_t* x, int64_t s, float* o, int64_t n) {
  if (t == DType::bf16) {
    if (s == 1)
      for (int64_t i = 0; i < n; ++i) o[i] = from_bf16(x[i]);
    else
      for (int64_t i = 0; i < n; ++i) o[i] = from_bf16(x[i * s]);
  } else {
    if (s == 1)
      for (int64_t i = 0; i < n; ++i) o[i] = from_f16(x[i]);
    else
      for (int64_t i = 0; i < n; ++i) o[i] = from_f16(x[i * s]);
  }
}
static inline void narrow_row(DType t, const float* x, uint16_t* o, int64_t s, int64_t n) {
  if (t == DType::bf16) {
    if (s == 1)
      for (int64_t i = 0; i < n; ++i) o[i] = to_bf16(x[i]);
    else
      for (int64_t i = 0; i < n; ++i) o[i * s] = to_bf16(x[i]);
  } else {
    if (s == 1)
      for (int64_t i = 0; i < n; ++i) o[i] = to_f16(x[i]);
    else
      for (int64_t i = 0; i < n; ++i) o[i * s] = to_f16(x[i]);
  }
}

}  // namespace rille::kernels::RILLE_ISA
