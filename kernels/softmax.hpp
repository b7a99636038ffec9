// Softmax over the last dimension of contiguous rows, or along columns (attrs.i[apart_at], attrs.i[column_at]), and its
// gradients from the output y: in = {y, gradient}.
#pragma once

#include "kernels/wide_rows.hpp"

RILLE_KERNEL_ROWS(softmax, 0)
RILLE_KERNEL_ROWS(log_softmax, 0) RILLE_KERNEL_ROWS(softmax_grad, 0) RILLE_KERNEL_ROWS(log_softmax_grad, 0)
