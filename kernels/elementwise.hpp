// One element in, one element out. Binary kernels take in[0] and in[1] of the same shape (strides of 0 broadcast), or
// one input and a number: attrs.f[0], on the left when attrs.i[0] is 1. The output may be the memory of an input. f16
// and bf16 are computed in f32 and rounded once.
#pragma once

#include "kernels/call.hpp"

// clang-format off
// arithmetic.cpp: numbers of any type but bool
RILLE_KERNEL(add) RILLE_KERNEL(sub) RILLE_KERNEL(mul) RILLE_KERNEL(maximum) RILLE_KERNEL(minimum)
RILLE_KERNEL(neg) RILLE_KERNEL(abs) RILLE_KERNEL(sign) RILLE_KERNEL(clamp)        // clamp: between attrs.f[0] and f[1]
RILLE_KERNEL(floor_divide) RILLE_KERNEL(remainder)                               // as Python's // and %
RILLE_KERNEL(axpy)        // out[0] += attrs.f[0] * in[0], out strided
RILLE_KERNEL(scale)       // out[0] *= in[0] (strided), or *= attrs.f[0] without input
RILLE_KERNEL(clamp_grad)  // in = {x, gradient}
// compare.cpp: results are bool
RILLE_KERNEL(lt) RILLE_KERNEL(le) RILLE_KERNEL(gt) RILLE_KERNEL(ge) RILLE_KERNEL(eq) RILLE_KERNEL(ne)
// bits of whole numbers and of bool
RILLE_KERNEL(bitwise_and) RILLE_KERNEL(bitwise_or) RILLE_KERNEL(bitwise_xor) RILLE_KERNEL(bitwise_not)
RILLE_KERNEL(where)       // in = {bool, a, b}
// functions.cpp: floats
RILLE_KERNEL(div) RILLE_KERNEL(pow) RILLE_KERNEL(atan2)
RILLE_KERNEL(exp) RILLE_KERNEL(expm1) RILLE_KERNEL(log) RILLE_KERNEL(log1p) RILLE_KERNEL(sqrt) RILLE_KERNEL(rsqrt)
RILLE_KERNEL(sin) RILLE_KERNEL(cos) RILLE_KERNEL(tan) RILLE_KERNEL(asin) RILLE_KERNEL(acos) RILLE_KERNEL(atan)
RILLE_KERNEL(sinh) RILLE_KERNEL(cosh) RILLE_KERNEL(erf)
RILLE_KERNEL(floor) RILLE_KERNEL(ceil) RILLE_KERNEL(round) RILLE_KERNEL(trunc)   // round: halves to the even number
// activations.cpp: floats. Gradients from the output y (tanh, sigmoid, relu) or the input x (the others):
// in = {y or x, gradient of the output}.
RILLE_KERNEL(tanh) RILLE_KERNEL(tanh_grad) RILLE_KERNEL(sigmoid) RILLE_KERNEL(sigmoid_grad)
RILLE_KERNEL(relu) RILLE_KERNEL(relu_grad) RILLE_KERNEL(abs_grad)
RILLE_KERNEL(gelu) RILLE_KERNEL(gelu_grad)              // the tanh form
RILLE_KERNEL(gelu_erf) RILLE_KERNEL(gelu_erf_grad)      // the exact form
RILLE_KERNEL(silu) RILLE_KERNEL(silu_grad)
RILLE_KERNEL(leaky_relu) RILLE_KERNEL(leaky_relu_grad)  // attrs.f[0]: the slope below zero
RILLE_KERNEL(elu) RILLE_KERNEL(elu_grad)                // attrs.f[0]: alpha
RILLE_KERNEL(softplus) RILLE_KERNEL(softplus_grad)      // attrs.f[0]: beta
RILLE_KERNEL(hardswish) RILLE_KERNEL(hardswish_grad) RILLE_KERNEL(hardsigmoid) RILLE_KERNEL(hardsigmoid_grad)
    // clang-format on
