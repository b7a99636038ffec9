// Along the last dimension of contiguous rows.
#pragma once

#include "kernels/call.hpp"

RILLE_KERNEL_WIDE(cumsum)  // out[0][i] = in[0][0] + .. + in[0][i]; attrs.i[0] = 1: from the end. Floats in f64, i64
// in: x, contiguous; the gradient of prod, one for each row of x. out: the gradient of x
RILLE_KERNEL_WIDE(prod_grad)
