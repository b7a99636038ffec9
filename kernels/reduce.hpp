// Reductions. in[0] is seen as [outer.., reduced..]: its last attrs.i[0] dimensions are reduced (the caller
// permutes the view, no copy). out[0] is contiguous and has the outer shape. f16 and bf16 are added up in f32.
#pragma once

#include "kernels/call.hpp"

RILLE_KERNEL(sum)   // times attrs.f[0] when that is not 0 (mean); out is i64 for integers
RILLE_KERNEL(prod)  // floats and i64, in f64 and i64
RILLE_KERNEL(amax)
RILLE_KERNEL(amin)
RILLE_KERNEL(argmax)  // one reduced dimension; out is i64; the first of equals
RILLE_KERNEL(argmin)
