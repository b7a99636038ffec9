// What collectives do with the contributions of several ranks: one after the other, in their order, element by element.
// So the sum of an element has the same bits wherever it is made, and however the message was cut.
#pragma once

#include "kernels/call.hpp"

namespace rille::kernels {
enum class Fold : std::uint8_t { sum, mean, max, min, product };
// Whether fold() knows elements of this type: f16 bf16 f32 f64 i32 i64; a mean is of floating ones.
constexpr bool folds(DType t, Fold f) {
  return is_floating(t) || (f != Fold::mean && (t == DType::i32 || t == DType::i64));
}
}  // namespace rille::kernels

// out[0] = in[0] op in[1] op ..; attrs.i[0] is a Fold. Half types are folded in f32 and rounded once. All contiguous
// and of one length; out[0] may be one of them. Whole numbers wrap; NaN stays.
RILLE_KERNEL(fold)
