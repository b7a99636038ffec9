// Normalisation by the root of the mean square (Zhang and Sennrich 2019) over the last dimension of contiguous rows.
#pragma once

#include "kernels/wide_rows.hpp"

RILLE_KERNEL_ROWS(rms_norm, 0b10)  // in: x [rows, c], weight [c] or null; out: y, 1/root [rows]. attrs.f[0]: eps
RILLE_KERNEL_WIDE(
    rms_norm_grad)  // in: gradient of y, x, weight (or null), 1/root; out: gradients of x, weight (or null)
