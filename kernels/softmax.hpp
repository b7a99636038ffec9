// Softmax over the last dimension of contiguous rows, and its gradients from the output y: in = {y, gradient}.
#pragma once

#include "kernels/call.hpp"

RILLE_KERNEL_WIDE(softmax) RILLE_KERNEL_WIDE(log_softmax)
RILLE_KERNEL_WIDE(softmax_grad) RILLE_KERNEL_WIDE(log_softmax_grad)
