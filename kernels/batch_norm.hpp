// Batch normalisation (Ioffe and Szegedy 2015) of contiguous [n, c, s], with the statistics of this batch.
#pragma once

#include "kernels/call.hpp"

// in: x, weight [c], bias [c] (either may be null); out: y, mean [c], variance [c] (divided by n s). attrs.f[0]: eps
RILLE_KERNEL_WIDE(batch_norm)
// in: gradient of y, x, weight (or null), mean, variance; out: gradients of x, weight, bias. attrs.f[0]: eps
RILLE_KERNEL_WIDE(batch_norm_grad)
