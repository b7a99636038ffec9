// Combines the contributions of several ranks, element by element in rank order. The bits of a result therefore depend
// neither on the rank that computes the result nor on how the message is divided.
#pragma once

#include "kernels/call.hpp"

namespace rille::kernels {
enum class Fold : std::uint8_t { sum, mean, max, min, product };
// Whether fold() supports the type: f16, bf16, f32, f64, i32 and i64; mean only floating types.
constexpr bool folds(DType t, Fold f) {
  return is_floating(t) || (f != Fold::mean && (t == DType::i32 || t == DType::i64));
}
}  // namespace rille::kernels

// out[0] = in[0] op in[1] op ..; attrs.i[0] is a Fold. Half types are folded in f32 and rounded once. All operands are
// contiguous and of equal length; out[0] may alias an input. Integers wrap; NaN propagates.
RILLE_KERNEL(fold)
