// Group normalisation (Wu and He 2018) of contiguous [n, c, s]: attrs.i[0] groups of channels, each with statistics of
// its own. Weight and bias, [c], may be null, and of another floating type than x; statistics are f32 for half types.
#pragma once

#include "kernels/call.hpp"

// in: x, weight, bias; out: y, mean [n * groups], rstd [n * groups]. attrs.f[0]: eps
RILLE_KERNEL(group_norm)
// in: gradient of y, x, weight, mean, rstd; out: gradients of x, weight, bias (the last two may be null)
RILLE_KERNEL(group_norm_grad)
