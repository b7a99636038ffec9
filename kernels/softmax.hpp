// Softmax over the last dimension of contiguous rows, and its gradients from the output y: in = {y, gradient}.
#pragma once

#include "kernels/call.hpp"

RILLE_KERNEL(softmax) RILLE_KERNEL(log_softmax) RILLE_KERNEL(softmax_grad) RILLE_KERNEL(log_softmax_grad)
