// Layer normalisation (Ba et al. 2016) over the last dimension of contiguous rows.
#pragma once

#include "kernels/wide_rows.hpp"

// in: x [rows, c], weight [c], bias [c] (either may be null); out: y, mean [rows], rstd [rows]. attrs.f[0]: eps
RILLE_KERNEL_ROWS(layer_norm, 0b110)
// in: gradient of y, x, weight (or null), mean, rstd; out: gradients of x, weight, bias (the last two may be null)
RILLE_KERNEL_WIDE(layer_norm_grad)
