// Attention with what kernels/attention.hpp leaves out: masks, a number of keys for each batch entry, and
// groups of query heads that share keys and values. Windows [b, h, t, d] whose last stride is 1. attrs.f[0]:
// scale; attrs.i[0]: 1 for causal (query i sees keys <= i + s - t). A query that sees no key gives zeros.
#pragma once

#include "kernels/call.hpp"

// in: q [b, h, t, d], k [b, g, s, d], v [b, g, s, e], g a divisor of h; mask [b, h, t, s] with any strides or
// null: bool, true where a key is seen, or of q's type, added to the scores; lengths [b], i64 or null: keys
// from there on are not seen. out: o [b, h, t, e], log-sum-exp [b, h, t], infinite where no key is seen
RILLE_KERNEL_WIDE(attention_masked)
// in: gradient of o, q, k, v, mask, lengths, o, log-sum-exp; out: gradients of q, k, v
RILLE_KERNEL_WIDE(attention_masked_grad)
