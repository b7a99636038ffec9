// One element in, one element out. Binary kernels take in[0] and in[1] of the same shape (strides of 0
// broadcast), or one input and a number: attrs.f[0], on the left when attrs.i[0] is 1. out[0] is contiguous
// and may be the memory of an input.
#pragma once

#include "kernels/call.hpp"

// clang-format off
RILLE_KERNEL(add) RILLE_KERNEL(sub) RILLE_KERNEL(mul) RILLE_KERNEL(div) RILLE_KERNEL(pow)
RILLE_KERNEL(maximum) RILLE_KERNEL(minimum)
RILLE_KERNEL(lt) RILLE_KERNEL(le) RILLE_KERNEL(gt) RILLE_KERNEL(ge) RILLE_KERNEL(eq) RILLE_KERNEL(ne)
RILLE_KERNEL(neg) RILLE_KERNEL(abs) RILLE_KERNEL(exp) RILLE_KERNEL(log) RILLE_KERNEL(sqrt) RILLE_KERNEL(rsqrt)
RILLE_KERNEL(tanh) RILLE_KERNEL(sigmoid) RILLE_KERNEL(relu) RILLE_KERNEL(gelu)
// Gradients from the output y (tanh, sigmoid, relu) or the input x (gelu, abs): in = {y or x, gradient of the output}.
RILLE_KERNEL(tanh_grad) RILLE_KERNEL(sigmoid_grad) RILLE_KERNEL(relu_grad) RILLE_KERNEL(gelu_grad)
RILLE_KERNEL(abs_grad)
RILLE_KERNEL(where)       // in = {bool, a, b}
RILLE_KERNEL(axpy)        // out[0] += attrs.f[0] * in[0], out strided
RILLE_KERNEL(scale)       // out[0] *= in[0] (strided), or *= attrs.f[0] without input
// clang-format on
