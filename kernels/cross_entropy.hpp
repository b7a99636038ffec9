// Softmax and negative log likelihood in one, the probabilities never stored. Rows whose label is attrs.i[0]
// do not count.
#pragma once

#include "kernels/call.hpp"

RILLE_KERNEL(cross_entropy)       // in: logits [rows.., c], labels [rows..]; out: mean loss (0-d), log-sum-exp [rows..]
RILLE_KERNEL(cross_entropy_grad)  // in: gradient (0-d), logits, labels, log-sum-exp; out: gradient of the logits
