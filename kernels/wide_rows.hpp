// Runs row kernels on half types: makes f32 copies of a few rows at a time, which stay in the cache.
#pragma once

#include "kernels/call.hpp"

namespace rille::kernels {

// Indices in attrs.i of row kernels that also run along columns: the stride between the elements of a column (0: the
// call runs along rows), and their number. Along columns, such a kernel reads and writes half types itself.
inline constexpr int apart_at = 0, column_at = 1;

// Like widened(), for a kernel that treats the rows of its contiguous operands independently. A row is the last
// dimension of the first input. Every other operand has one row, or one number, per row; the inputs whose bits are set
// in `whole` (such as a weight) are passed whole.
void widened_rows(const Call& c, Kernel kernel, unsigned whole);

}  // namespace rille::kernels
