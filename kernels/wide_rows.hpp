// Row kernels on half types: f32 copies are made of a few rows at a time, so that they stay in the cache.
#pragma once

#include "kernels/call.hpp"

namespace rille::kernels {

// attrs.i of row kernels that also run along columns: the stride between a column's elements (0: rows), and their
// number. Along columns, such a kernel reads and writes half types itself.
inline constexpr int apart_at = 0, column_at = 1;

// Like widened(), for a kernel that treats the rows of its contiguous operands independently. A row is the last
// dimension of the first input. Every other operand has one row, or one number, per row, except the inputs whose bit
// is set in `whole` (a weight).
void widened_rows(const Call& c, Kernel kernel, unsigned whole);

}  // namespace rille::kernels
