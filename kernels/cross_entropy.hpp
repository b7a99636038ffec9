// Softmax and negative log likelihood in one, the probabilities never stored. Rows whose label is attrs.i[0]
// do not count. attrs.f[0]: label smoothing, shared out over all classes.
#pragma once

#include "kernels/call.hpp"

// in: logits [rows.., c], labels [rows..]; out: mean loss (0-d), log-sum-exp [rows..]
RILLE_KERNEL_WIDE(cross_entropy)
// in: gradient (0-d), logits, labels, log-sum-exp; out: gradient of the logits
RILLE_KERNEL_WIDE(cross_entropy_grad)
