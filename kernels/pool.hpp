// Pooling over windows of the last two dimensions of contiguous [n, c, h, w]. attrs.i: window (h, w), stride (h, w),
// padding (h, w), dilation (h, w).
#pragma once

#include "kernels/call.hpp"

RILLE_KERNEL_WIDE(max_pool)       // in: x; out: y, and where each stands in its plane, i32. A NaN is the largest
RILLE_KERNEL_WIDE(max_pool_grad)  // in: gradient of y, places; out: gradient of x
// attrs.f[0] = 1: padding counts as zeros; attrs.f[1] = 1: adaptive, the windows follow from the sizes of in and out
RILLE_KERNEL_WIDE(avg_pool)       // in: x; out: y
RILLE_KERNEL_WIDE(avg_pool_grad)  // in: gradient of y; out: gradient of x
