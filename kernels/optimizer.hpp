// Updates of many tensors in one call. Everything is contiguous. attrs.i[0] is the number of parameters, n. Where
// attrs.i[2] is 1, one more input is the last: a flag, 0-d f32; when it is set, nothing is changed.
#pragma once

#include "kernels/call.hpp"

RILLE_KERNEL(increment)  // each element of out[0], i64, += 1
// in: steps (i64 [n]), lr (0-d), g[n]; out, in place: p[n], m[n], v[n]. attrs.f: beta1, beta2, eps, weight decay;
// i[1]: 1 adds the decay to the gradient (Adam), 0 takes it from the parameter (AdamW). Where the parameters are f32,
// each gradient may be f16 or bf16.
RILLE_KERNEL(adamw)
// in: lr (0-d), g[n]; out, in place: p[n], then momentum[n] if attrs.f[0] (momentum) != 0. attrs.f: momentum,
// decay; i[1]: nesterov; i[3]: 1 takes the decay from the parameter, 0 adds it to the gradient
RILLE_KERNEL(sgd)
// in: lr (0-d), g[n]; out, in place: p[n], m[n]. attrs.f: beta1, beta2, weight decay
RILLE_KERNEL(lion)
// y = d y + (1 - d) x. in: steps (0-d i64, or left out), x[n]; out, in place: y[n]. attrs.f: d; with steps at most
// (1 + steps) / (10 + steps)
RILLE_KERNEL(average)
RILLE_KERNEL(grad_norm)  // in: g[n]; out: their joint 2-norm, 0-d
RILLE_KERNEL(grad_clip)  // in: norm; out, in place: g[n] *= min(1, attrs.f[0] / (norm + 1e-6))
// in: scale (0-d f32); out, in place: flag (0-d f32: 1 where some g is not finite, else 0), g[any number] /= scale
RILLE_KERNEL(grad_unscale)
// in: flag; out, in place: scale (0-d f32), good steps (0-d i64). A flag: scale *= attrs.f[1], good = 0. None: one more
// good step; after attrs.i[0] of them scale *= attrs.f[0], good = 0
RILLE_KERNEL(loss_scale)
