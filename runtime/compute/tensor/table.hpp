// The one table of operations: X(name, kernel, gradient rule, what the rule keeps, may its output take an
// input's memory). A view has no kernel; an operation without gradient has no rule. Rules stand in
// gradients_*.cpp.
#pragma once

#include <cstdint>

#include "kernels/call.hpp"

namespace rille::tensor {

enum class Keep : std::uint8_t { nothing, inputs, outputs, both };

class Backward;  // gradient.hpp
using GradRule = void (*)(Backward&);

struct Op {
  const char* name;
  kernels::Kernel kernel;  // null: a view
  GradRule grad;           // null: no gradient
  Keep keep;
  bool in_place;            // element by element: the output may be the memory of an input
  const char* kernel_name;  // as other devices know it
};

#define RILLE_OPERATIONS(X)                                                                \
  X(add, add, add, nothing, true)                                                          \
  X(sub, sub, sub, nothing, true)                                                          \
  X(mul, mul, mul, inputs, true)                                                           \
  X(div, div, div, inputs, true)                                                           \
  X(pow, pow, pow, both, true)                                                             \
  X(maximum, maximum, maximum, inputs, true)                                               \
  X(minimum, minimum, minimum, inputs, true)                                               \
  X(lt, lt, none, nothing, false)                                                          \
  X(le, le, none, nothing, false)                                                          \
  X(gt, gt, none, nothing, false)                                                          \
  X(ge, ge, none, nothing, false)                                                          \
  X(eq, eq, none, nothing, false)                                                          \
  X(ne, ne, none, nothing, false)                                                          \
  X(neg, neg, neg, nothing, true)                                                          \
  X(abs, abs, abs, inputs, true)                                                           \
  X(exp, exp, exp, outputs, true)                                                          \
  X(log, log, log, inputs, true)                                                           \
  X(sqrt, sqrt, sqrt, outputs, true)                                                       \
  X(rsqrt, rsqrt, rsqrt, outputs, true)                                                    \
  X(tanh, tanh, tanh, outputs, true)                                                       \
  X(sigmoid, sigmoid, sigmoid, outputs, true)                                              \
  X(relu, relu, relu, outputs, true)                                                       \
  X(gelu, gelu, gelu, inputs, true)                                                        \
  X(gelu_erf, gelu_erf, gelu_erf, inputs, true)                                            \
  X(sign, sign, flat, nothing, true)                                                       \
  X(floor, floor, flat, nothing, true)                                                     \
  X(ceil, ceil, flat, nothing, true)                                                       \
  X(round, round, flat, nothing, true)                                                     \
  X(trunc, trunc, flat, nothing, true)                                                     \
  X(clamp, clamp, clamp, inputs, true)                                                     \
  X(atan2, atan2, atan2, inputs, true)                                                     \
  X(floor_divide, floor_divide, flat, nothing, true)                                       \
  X(remainder, remainder, remainder, inputs, true)                                         \
  X(bitwise_and, bitwise_and, none, nothing, true)                                         \
  X(bitwise_or, bitwise_or, none, nothing, true)                                           \
  X(bitwise_xor, bitwise_xor, none, nothing, true)                                         \
  X(bitwise_not, bitwise_not, none, nothing, true)                                         \
  X(expm1, expm1, expm1, outputs, true)                                                    \
  X(log1p, log1p, log1p, inputs, true)                                                     \
  X(sin, sin, sin, inputs, true)                                                           \
  X(cos, cos, cos, inputs, true)                                                           \
  X(tan, tan, tan, outputs, true)                                                          \
  X(asin, asin, asin, inputs, true)                                                        \
  X(acos, acos, acos, inputs, true)                                                        \
  X(atan, atan, atan, inputs, true)                                                        \
  X(sinh, sinh, sinh, inputs, true)                                                        \
  X(cosh, cosh, cosh, inputs, true)                                                        \
  X(erf, erf, erf, inputs, true)                                                           \
  X(silu, silu, silu, inputs, true)                                                        \
  X(leaky_relu, leaky_relu, leaky_relu, inputs, true)                                      \
  X(elu, elu, elu, inputs, true)                                                           \
  X(softplus, softplus, softplus, inputs, true)                                            \
  X(hardswish, hardswish, hardswish, inputs, true)                                         \
  X(hardsigmoid, hardsigmoid, hardsigmoid, inputs, true)                                   \
  X(clamp_grad, clamp_grad, none, nothing, true)                                           \
  X(gelu_erf_grad, gelu_erf_grad, none, nothing, true)                                     \
  X(silu_grad, silu_grad, none, nothing, true)                                             \
  X(leaky_relu_grad, leaky_relu_grad, none, nothing, true)                                 \
  X(elu_grad, elu_grad, none, nothing, true)                                               \
  X(softplus_grad, softplus_grad, none, nothing, true)                                     \
  X(hardswish_grad, hardswish_grad, none, nothing, true)                                   \
  X(hardsigmoid_grad, hardsigmoid_grad, none, nothing, true)                               \
  X(abs_grad, abs_grad, none, nothing, true)                                               \
  X(tanh_grad, tanh_grad, none, nothing, true)                                             \
  X(sigmoid_grad, sigmoid_grad, none, nothing, true)                                       \
  X(relu_grad, relu_grad, none, nothing, true)                                             \
  X(gelu_grad, gelu_grad, none, nothing, true)                                             \
  X(where, where, where, inputs, false)                                                    \
  X(cast, copy, cast, nothing, false)                                                      \
  X(contiguous, copy, contiguous, nothing, false)                                          \
  X(fill, fill, none, nothing, false)                                                      \
  X(arange, arange, none, nothing, false)                                                  \
  X(cat, cat, cat, nothing, false)                                                         \
  X(pad, pad, none, nothing, false)                                                        \
  X(uniform, uniform, none, nothing, false)                                                \
  X(normal, normal, none, nothing, false)                                                  \
  X(integers, integers, none, nothing, false)                                              \
  X(dropout, dropout, dropout, nothing, true)                                              \
  X(multinomial, multinomial, none, nothing, false)                                        \
  X(matmul, matmul, matmul, inputs, false)                                                 \
  X(linear, matmul, linear, inputs, false)                                                 \
  X(linear_activated, matmul_activated, none, nothing, false)                              \
  X(attention, attention, attention, both, false)                                          \
  X(attention_grad, attention_grad, none, nothing, false)                                  \
  X(attention_masked, attention_masked, attention_masked, both, false)                     \
  X(attention_masked_grad, attention_masked_grad, none, nothing, false)                    \
  X(rope, rope, rope, inputs, false)                                                       \
  X(convolution, convolution, convolution, inputs, false)                                  \
  X(convolution_grad_input, convolution_grad_input, convolution_grad_input, inputs, false) \
  X(convolution_grad_weight, convolution_grad_weight, none, nothing, false)                \
  X(max_pool, max_pool, max_pool, outputs, false)                                          \
  X(max_pool_grad, max_pool_grad, none, nothing, false)                                    \
  X(avg_pool, avg_pool, avg_pool, nothing, false)                                          \
  X(avg_pool_grad, avg_pool_grad, none, nothing, false)                                    \
  X(batch_norm, batch_norm, batch_norm, both, false)                                       \
  X(batch_norm_grad, batch_norm_grad, none, nothing, false)                                \
  X(rms_norm, rms_norm, rms_norm, both, false)                                             \
  X(rms_norm_grad, rms_norm_grad, none, nothing, false)                                    \
  X(fourier, fourier, fourier, nothing, false)                                             \
  X(reshape, view, reshape, nothing, false)                                                \
  X(permute, view, permute, nothing, false)                                                \
  X(narrow, view, narrow, nothing, false)                                                  \
  X(slice, view, slice, nothing, false)                                                    \
  X(expand, view, expand, nothing, false)                                                  \
  X(chunk, view, chunk, nothing, false)                                                    \
  X(sum, sum, sum, nothing, false)                                                         \
  X(amax, amax, extreme, both, false)                                                      \
  X(amin, amin, extreme, both, false)                                                      \
  X(argmax, argmax, none, nothing, false)                                                  \
  X(argmin, argmin, none, nothing, false)                                                  \
  X(prod, prod, prod, inputs, false)                                                       \
  X(prod_grad, prod_grad, none, nothing, false)                                            \
  X(cumsum, cumsum, cumsum, nothing, false)                                                \
  X(gather, gather, gather, inputs, false)                                                 \
  X(scatter, scatter, scatter, inputs, false)                                              \
  X(index_select, index_select, index_select, inputs, false)                               \
  X(index_add, index_add, none, nothing, false)                                            \
  X(sort, sort, sort, outputs, false)                                                      \
  X(tril, tril, tril, nothing, false)                                                      \
  X(flip, copy, flip, nothing, false)                                                      \
  X(softmax, softmax, softmax, outputs, false)                                             \
  X(log_softmax, log_softmax, log_softmax, outputs, false)                                 \
  X(softmax_grad, softmax_grad, none, nothing, false)                                      \
  X(log_softmax_grad, log_softmax_grad, none, nothing, false)                              \
  X(layer_norm, layer_norm, layer_norm, both, false)                                       \
  X(layer_norm_grad, layer_norm_grad, none, nothing, false)                                \
  X(embedding, embedding, embedding, inputs, false)                                        \
  X(embedding_grad, embedding_grad, none, nothing, false)                                  \
  X(embedding_add, embedding_add, none, nothing, true)                                     \
  X(cross_entropy, cross_entropy, cross_entropy, both, false)                              \
  X(cross_entropy_grad, cross_entropy_grad, none, nothing, false)                          \
  X(axpy, axpy, none, nothing, false)                                                      \
  X(scale, scale, none, nothing, false)                                                    \
  X(copy, copy, none, nothing, false)                                                      \
  X(increment, increment, none, nothing, false)                                            \
  X(adamw, adamw, none, nothing, false)                                                    \
  X(sgd, sgd, none, nothing, false)                                                        \
  X(lion, lion, none, nothing, false)                                                      \
  X(average, average, none, nothing, false)                                                \
  X(grad_unscale, grad_unscale, none, nothing, false)                                      \
  X(loss_scale, loss_scale, none, nothing, false)                                          \
  X(grad_norm, grad_norm, none, nothing, false)                                            \
  X(grad_clip, grad_clip, none, nothing, false)                                            \
  X(fused, fused, none, nothing, false)                                                    \
  X(launch, launch, none, nothing, false)

enum class OpId : std::uint8_t {
#define RILLE_ID(name, kernel, rule, keep, in_place) name,
  RILLE_OPERATIONS(RILLE_ID)
#undef RILLE_ID
};

const Op& op_of(OpId id);
bool draws(const Op& op);  // random numbers: two that look the same are not

}  // namespace rille::tensor
