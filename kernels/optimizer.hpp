// Updates of many tensors in one call. Everything is contiguous. attrs.i[0] is the number of parameters, n.
#pragma once

#include "kernels/call.hpp"

RILLE_KERNEL(increment)     // out[0] += 1, 0-d i64
// in: step (0-d i64), lr (0-d), g[n]; out, in place: p[n], m[n], v[n]. attrs.f: beta1, beta2, eps, weight decay
RILLE_KERNEL(adamw)
// in: lr (0-d), g[n]; out, in place: p[n], then momentum[n] if attrs.f[0] (momentum) != 0. attrs.f: momentum,
// decay; i[1]: nesterov
RILLE_KERNEL(sgd)
RILLE_KERNEL(grad_norm)     // in: g[n]; out: their joint 2-norm, 0-d
RILLE_KERNEL(grad_clip)     // in: norm; out, in place: g[n] *= min(1, attrs.f[0] / (norm + 1e-6))
