// Sums of squares, in one reading. in[0] is seen as for a sum (kernels/reduce.hpp); out[0] and out[1] have the outer
// shape: the sums times attrs.f[0], and the means. attrs.i[1]: of what the elements are away from their mean; else of
// the elements, and there is no out[1]. Outputs are f32 for half types, else of in[0]'s type.
#pragma once

#include "kernels/call.hpp"

RILLE_KERNEL(squares)
