// Kernels of rows in half types: f32 copies are made of so many rows at a time that they stay in the cache.
#pragma once

#include "kernels/call.hpp"

namespace rille::kernels {

// attrs.i of kernels of rows that know columns, too: how far apart the elements of a column lie (0: rows), and how
// many they are. Of columns such a kernel reads and writes half types itself.
inline constexpr int apart_at = 0, column_at = 1;

// As widened(), for a kernel that computes each row of its contiguous operands by itself. The last dimension of the
// first input is a row; every other operand has one, or one number, for each of its rows, but those inputs whose bit is
// set in `whole` (a weight).
void widened_rows(const Call& c, Kernel kernel, unsigned whole);

}  // namespace rille::kernels
