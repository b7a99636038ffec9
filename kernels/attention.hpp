// Scaled dot-product attention on [b, h, t, d] windows whose last stride is 1; the others are free, so the
// pieces of one fused projection are read in place. attrs.f[0]: scale; attrs.i[0]: 1 for causal (query i sees
// keys <= i + s - t).
#pragma once

#include "kernels/call.hpp"

RILLE_KERNEL(attention)       // in: q [b,h,t,d], k, v [b,h,s,d]; out: o [b,h,t,d], log-sum-exp [b,h,t]
RILLE_KERNEL(attention_grad)  // in: gradient of o, q, k, v, o, log-sum-exp; out: gradients of q, k, v
