// Random numbers: Philox 4x32-10 (Salmon et al., SC 2011), keyed by c.random and counted by position, so that the same
// place of the same operation draws the same number on any device, layout and number of threads.
#pragma once

#include "kernels/call.hpp"

RILLE_KERNEL_WIDE(uniform)      // out[0] = attrs.f[0] + (attrs.f[1] - attrs.f[0]) * u, u in [0, 1)
RILLE_KERNEL_WIDE(normal)       // out[0] ~ N(0, 1), by Box and Muller
RILLE_KERNEL(integers)          // out[0] uniform in [attrs.i[0], attrs.i[1])
RILLE_KERNEL_WIDE(dropout)      // out[0] = in[0] where kept / (1 - p), else 0; p = attrs.f[0]. Its own gradient, by
                                // the same key
RILLE_KERNEL_WIDE(multinomial)  // in[0] [rows, c] weights -> out[0] [rows] i64
