// Rotary position embedding (Su et al. 2021): pairs of each row [.., t, d] are turned by the angles of their position.
#pragma once

#include "kernels/call.hpp"

// in: x contiguous [.., t, d], cos and sin contiguous [t, d/2]; out like x. Pairs are (i, i + d/2), or (2i,
// 2i + 1) when attrs.i[0] = 1. attrs.i[1] = 1: turned back, which is the gradient.
RILLE_KERNEL_WIDE(rope)
