// Elements as they lie in memory (S) and as one computes with them (Computed<S>): f16 and bf16 in f32. For kernels that
// read and write half types themselves, without copies of whole operands.
#pragma once

#include "kernels/half.hpp"

namespace rille::kernels::RILLE_ISA {

struct F16 { uint16_t bits; };
struct Bf16 { uint16_t bits; };

template <class S> struct ComputedAs { using type = S; };
template <> struct ComputedAs<F16> { using type = float; };
template <> struct ComputedAs<Bf16> { using type = float; };
template <class S> using Computed = typename ComputedAs<S>::type;

template <class S> RILLE_INLINE Computed<S> widen(S x) { return x; }
template <> inline __attribute__((always_inline)) float widen(F16 x) { return from_f16(x.bits); }
template <> inline __attribute__((always_inline)) float widen(Bf16 x) { return from_bf16(x.bits); }

template <class S> RILLE_INLINE S narrow(Computed<S> x) { return x; }
template <> inline __attribute__((always_inline)) F16 narrow<F16>(float x) { return {to_f16(x)}; }
template <> inline __attribute__((always_inline)) Bf16 narrow<Bf16>(float x) { return {to_bf16(x)}; }

template <class A, class B> inline constexpr bool same_type = false;
template <class A> inline constexpr bool same_type<A, A> = true;

// n elements, s apart, as one computes with them: where they lie, or in `buffer`.
template <class S> static inline const Computed<S>* computed(const S* x, int64_t s, int64_t n, Computed<S>* buffer) {
  if constexpr (same_type<S, Computed<S>>) if (s == 1) return x;
  if (s == 1) for (int64_t i = 0; i < n; ++i) buffer[i] = widen(x[i]);
  else for (int64_t i = 0; i < n; ++i) buffer[i] = widen(x[i * s]);
  return buffer;
}

// Element i of a vector of any floating type; `otherwise` where there is none.
template <class T> static inline T element_of(const View& v, int64_t i, T otherwise) {
  if (!v.data) return otherwise;
  switch (v.dtype) {
    case DType::f16: return T(from_f16(v.ptr<uint16_t>()[i]));
    case DType::bf16: return T(from_bf16(v.ptr<uint16_t>()[i]));
    case DType::f32: return T(v.ptr<float>()[i]);
    default: return T(v.ptr<double>()[i]);
  }
}
static inline void put_element(const View& v, int64_t i, double x) {
  switch (v.dtype) {
    case DType::f16: v.ptr<uint16_t>()[i] = to_f16(float(x)); return;
    case DType::bf16: v.ptr<uint16_t>()[i] = to_bf16(float(x)); return;
    case DType::f32: v.ptr<float>()[i] = float(x); return;
    default: v.ptr<double>()[i] = x;
  }
}

}  // namespace rille::kernels::RILLE_ISA

// Calls `body` with S standing for the element type of a floating operand.
#define RILLE_REALS(dtype, ...)                                                                                   \
  do {                                                                                                            \
    switch (dtype) {                                                                                              \
      case ::rille::DType::f16: { using S = F16; __VA_ARGS__; break; }                                            \
      case ::rille::DType::bf16: { using S = Bf16; __VA_ARGS__; break; }                                          \
      case ::rille::DType::f32: { using S = float; __VA_ARGS__; break; }                                          \
      default: { using S = double; __VA_ARGS__; break; }                                                          \
    }                                                                                                             \
  } while (0)
