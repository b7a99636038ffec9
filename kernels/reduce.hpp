// Reductions. in[0] is seen as [outer.., reduced..]: its last attrs.i[0] dimensions are reduced (the caller
// permutes the view, no copy). out[0] is contiguous and has the outer shape.
#pragma once

#include "kernels/call.hpp"

RILLE_KERNEL_WIDE(sum)      // times attrs.f[0] when that is not 0 (mean); out is i64 for integers
RILLE_KERNEL_WIDE(prod)     // floats and i64, in f64 and i64
RILLE_KERNEL_WIDE(amax)
RILLE_KERNEL_WIDE(amin)
RILLE_KERNEL_WIDE(argmax)   // one reduced dimension; out is i64; the first of equals
RILLE_KERNEL_WIDE(argmin)
