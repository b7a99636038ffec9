// Softmax and negative log likelihood in one, the probabilities never stored. Rows whose label is attrs.i[0]
// do not count. attrs.f[0]: label smoothing, shared out over all classes.
#pragma once

#include "kernels/call.hpp"

// in: logits [rows.., c], labels [rows..]; out: mean loss (0-d), the parts of the rows' log-sum-exp [rows.., 2]
RILLE_KERNEL_WIDE(cross_entropy)
// in: gradient (0-d), logits, labels, those parts; out: gradient of the logits
RILLE_KERNEL_WIDE(cross_entropy_grad)
