// Moving and filling memory.
#pragma once

#include "kernels/call.hpp"

RILLE_KERNEL(copy)         // out[0] = in[0], any strides (a broadcast input has strides of 0), any pair of types
RILLE_KERNEL(fill)         // out[0] = attrs.f[0], or attrs.i[0] for integers; any strides
RILLE_KERNEL_WIDE(arange)  // out[0][i] = attrs.f[0] + i * attrs.f[1]
RILLE_KERNEL(cat)          // out[0] (contiguous) = in[0], in[1], ... one after another along dimension attrs.i[0]
RILLE_KERNEL(pad)  // out[0] = zeros, with in[0] at position attrs.i[1] of dimension attrs.i[0]: narrow's gradient
