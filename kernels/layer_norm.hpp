// Layer normalisation (Ba et al. 2016) over the last dimension of contiguous rows. Weight and bias may be of another
// floating type than x; statistics are f32 for half types.
#pragma once

#include "kernels/call.hpp"

// in: x [rows, c], weight [c], bias [c] (either may be null); out: y, mean [rows], rstd [rows]. attrs.f[0]: eps
RILLE_KERNEL(layer_norm)
// in: gradient of y, x, weight (or null), mean, rstd; out: gradients of x, weight, bias (the last two may be null)
RILLE_KERNEL(layer_norm_grad)
