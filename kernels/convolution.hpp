// Convolution of [n, c, h, w] with [o, c/groups, kh, kw], by oneDNN for f32 and, where the processor has
// instructions for it, bf16; f16 through f32; plain loops for f64 (tests only). attrs.i: stride (h, w),
// padding (h, w), dilation (h, w), groups. Inputs may be strided; outputs are contiguous. oneDNN chooses how
// data lies while it computes; what differs is copied in scratch memory.
#pragma once

#include "kernels/call.hpp"

namespace rille::kernels {

void convolution(const Call& c);              // in: x, weight, bias or none; out: y
void convolution_grad_input(const Call& c);   // in: gradient of y, weight; out: gradient of x
void convolution_grad_weight(const Call& c);  // in: x, gradient of y; out: gradients of weight and bias

}  // namespace rille::kernels
