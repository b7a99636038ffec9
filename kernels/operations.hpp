// The table of operations and the enum OpId, by which the tensor layer, the CPU kernels and the CUDA plug-in name them.
// All three are built together, so an id means the same in each. Each fact about an operation is stated only here;
// docs/design/tensor.md, "Adding an operation", lists the files that an operation needs.
//
//   X(name, kernel, build, launch, rule, keep, in_place)
//
// - kernel: the CPU kernel, kernels::kernel(const Call&). none: the operation is a view, which runs no kernel.
// - build: how that kernel is compiled and called (kernels/kernels.hpp). same: another row of the table declares it.
// - launch: the function that launches it on CUDA, kernels::cuda::launch. none: a view, or a user's kernel, which the
//   device launches itself.
// - rule: the gradient rule, tensor::gradient::rule (runtime/compute/tensor). none: no gradient.
// - keep: the tensors that the rule needs.
// - in_place: the operation is element-wise, so the output may alias an input.
//
// The rows are grouped: element-wise, copies, random, products, attention, images, views, reductions, indexing, rows,
// optimiser updates.
#pragma once

#include <cstdint>

#define RILLE_OPERATIONS(X)                                                                                       \
  X(add, add, each, binary, add, nothing, true)                                                                   \
  X(sub, sub, each, binary, sub, nothing, true)                                                                   \
  X(mul, mul, each, binary, mul, inputs, true)                                                                    \
  X(div, div, each, binary, div, inputs, true)                                                                    \
  X(pow, pow, each, binary, pow, both, true)                                                                      \
  X(maximum, maximum, each, binary, maximum, inputs, true)                                                        \
  X(minimum, minimum, each, binary, minimum, inputs, true)                                                        \
  X(lt, lt, each, binary, none, nothing, false)                                                                   \
  X(le, le, each, binary, none, nothing, false)                                                                   \
  X(gt, gt, each, binary, none, nothing, false)                                                                   \
  X(ge, ge, each, binary, none, nothing, false)                                                                   \
  X(eq, eq, each, binary, none, nothing, false)                                                                   \
  X(ne, ne, each, binary, none, nothing, false)                                                                   \
  X(neg, neg, each, unary, neg, nothing, true)                                                                    \
  X(abs, abs, each, unary, abs, inputs, true)                                                                     \
  X(exp, exp, each, unary, exp, outputs, true)                                                                    \
  X(log, log, each, unary, log, inputs, true)                                                                     \
  X(sqrt, sqrt, each, unary, sqrt, outputs, true)                                                                 \
  X(rsqrt, rsqrt, each, unary, rsqrt, outputs, true)                                                              \
  X(tanh, tanh, each, unary, tanh, outputs, true)                                                                 \
  X(sigmoid, sigmoid, each, unary, sigmoid, outputs, true)                                                        \
  X(relu, relu, each, unary, relu, outputs, true)                                                                 \
  X(gelu, gelu, each, unary, gelu, inputs, true)                                                                  \
  X(gelu_erf, gelu_erf, each, unary, gelu_erf, inputs, true)                                                      \
  X(sign, sign, each, unary, flat, nothing, true)                                                                 \
  X(floor, floor, each, unary, flat, nothing, true)                                                               \
  X(ceil, ceil, each, unary, flat, nothing, true)                                                                 \
  X(round, round, each, unary, flat, nothing, true)                                                               \
  X(trunc, trunc, each, unary, flat, nothing, true)                                                               \
  X(clamp, clamp, each, unary, clamp, inputs, true)                                                               \
  X(atan2, atan2, each, binary, atan2, inputs, true)                                                              \
  X(floor_divide, floor_divide, each, divided, flat, nothing, true)                                               \
  X(remainder, remainder, each, divided, remainder, inputs, true)                                                 \
  X(bitwise_and, bitwise_and, each, bits, none, nothing, true)                                                    \
  X(bitwise_or, bitwise_or, each, bits, none, nothing, true)                                                      \
  X(bitwise_xor, bitwise_xor, each, bits, none, nothing, true)                                                    \
  X(bitwise_not, bitwise_not, each, bits_not, none, nothing, true)                                                \
  X(expm1, expm1, each, unary, expm1, outputs, true)                                                              \
  X(log1p, log1p, each, unary, log1p, inputs, true)                                                               \
  X(sin, sin, each, unary, sin, inputs, true)                                                                     \
  X(cos, cos, each, unary, cos, inputs, true)                                                                     \
  X(tan, tan, each, unary, tan, outputs, true)                                                                    \
  X(asin, asin, each, unary, asin, inputs, true)                                                                  \
  X(acos, acos, each, unary, acos, inputs, true)                                                                  \
  X(atan, atan, each, unary, atan, inputs, true)                                                                  \
  X(sinh, sinh, each, unary, sinh, inputs, true)                                                                  \
  X(cosh, cosh, each, unary, cosh, inputs, true)                                                                  \
  X(erf, erf, each, unary, erf, inputs, true)                                                                     \
  X(silu, silu, each, unary, silu, inputs, true)                                                                  \
  X(leaky_relu, leaky_relu, each, unary, leaky_relu, inputs, true)                                                \
  X(elu, elu, each, unary, elu, inputs, true)                                                                     \
  X(softplus, softplus, each, unary, softplus, inputs, true)                                                      \
  X(hardswish, hardswish, each, unary, hardswish, inputs, true)                                                   \
  X(hardsigmoid, hardsigmoid, each, unary, hardsigmoid, inputs, true)                                             \
  X(clamp_grad, clamp_grad, each, binary, none, nothing, true)                                                    \
  X(gelu_erf_grad, gelu_erf_grad, each, binary, none, nothing, true)                                              \
  X(silu_grad, silu_grad, each, binary, none, nothing, true)                                                      \
  X(leaky_relu_grad, leaky_relu_grad, each, binary, none, nothing, true)                                          \
  X(elu_grad, elu_grad, each, binary, none, nothing, true)                                                        \
  X(softplus_grad, softplus_grad, each, binary, none, nothing, true)                                              \
  X(hardswish_grad, hardswish_grad, each, binary, none, nothing, true)                                            \
  X(hardsigmoid_grad, hardsigmoid_grad, each, binary, none, nothing, true)                                        \
  X(abs_grad, abs_grad, each, binary, none, nothing, true)                                                        \
  X(tanh_grad, tanh_grad, each, binary, none, nothing, true)                                                      \
  X(sigmoid_grad, sigmoid_grad, each, binary, none, nothing, true)                                                \
  X(relu_grad, relu_grad, each, binary, none, nothing, true)                                                      \
  X(gelu_grad, gelu_grad, each, binary, none, nothing, true)                                                      \
  X(where, where, each, where, where, inputs, false)                                                              \
  X(cast, copy, same, copy, cast, nothing, false)                                                                 \
  X(contiguous, copy, same, copy, contiguous, nothing, false)                                                     \
  X(fill, fill, each, fill, none, nothing, false)                                                                 \
  X(arange, arange, wide, arange, none, nothing, false)                                                           \
  X(cat, cat, each, cat, cat, nothing, false)                                                                     \
  X(pad, pad, each, pad, none, nothing, false)                                                                    \
  X(uniform, uniform, wide, uniform, none, nothing, false)                                                        \
  X(normal, normal, wide, normal, none, nothing, false)                                                           \
  X(integers, integers, each, integers, none, nothing, false)                                                     \
  X(dropout, dropout, wide, dropout, dropout, nothing, true)                                                      \
  X(multinomial, multinomial, wide, multinomial, none, nothing, false)                                            \
  X(matmul, matmul, once, matmul, matmul, inputs, false)                                                          \
  X(linear, matmul, same, matmul, linear, inputs, false)                                                          \
  X(linear_activated, matmul_activated, once, matmul_activated, none, nothing, false)                             \
  X(attention, attention, each, attention, attention, both, false)                                                \
  X(attention_grad, attention_grad, each, attention_grad, none, nothing, false)                                   \
  X(attention_masked, attention_masked, wide, attention_masked, attention_masked, both, false)                    \
  X(attention_masked_grad, attention_masked_grad, wide, attention_masked_grad, none, nothing, false)              \
  X(rope, rope, wide, rope, rope, inputs, false)                                                                  \
  X(convolution, convolution, once, convolution, convolution, inputs, false)                                      \
  X(convolution_grad_input, convolution_grad_input, once, convolution_grad_input, convolution_grad_input, inputs, \
    false)                                                                                                        \
  X(convolution_grad_weight, convolution_grad_weight, once, convolution_grad_weight, none, nothing, false)        \
  X(max_pool, max_pool, wide, max_pool, max_pool, outputs, false)                                                 \
  X(max_pool_grad, max_pool_grad, wide, max_pool_grad, none, nothing, false)                                      \
  X(avg_pool, avg_pool, wide, avg_pool, avg_pool, nothing, false)                                                 \
  X(avg_pool_grad, avg_pool_grad, wide, avg_pool_grad, none, nothing, false)                                      \
  X(batch_norm, batch_norm, wide, batch_norm, batch_norm, both, false)                                            \
  X(batch_norm_grad, batch_norm_grad, wide, batch_norm_grad, none, nothing, false)                                \
  X(rms_norm, rms_norm, rows_w, rms_norm, rms_norm, both, false)                                                  \
  X(rms_norm_grad, rms_norm_grad, wide, rms_norm_grad, none, nothing, false)                                      \
  X(fourier, fourier, once, fourier, fourier, nothing, false)                                                     \
  X(reshape, none, none, none, reshape, nothing, false)                                                           \
  X(permute, none, none, none, permute, nothing, false)                                                           \
  X(narrow, none, none, none, narrow, nothing, false)                                                             \
  X(slice, none, none, none, slice, nothing, false)                                                               \
  X(expand, none, none, none, expand, nothing, false)                                                             \
  X(chunk, none, none, none, chunk, nothing, false)                                                               \
  X(sum, sum, each, sum, sum, nothing, false)                                                                     \
  X(amax, amax, each, amax, extreme, both, false)                                                                 \
  X(amin, amin, each, amin, extreme, both, false)                                                                 \
  X(argmax, argmax, each, argmax, none, nothing, false)                                                           \
  X(argmin, argmin, each, argmin, none, nothing, false)                                                           \
  X(prod, prod, each, prod, prod, inputs, false)                                                                  \
  X(prod_grad, prod_grad, wide, prod_grad, none, nothing, false)                                                  \
  X(cumsum, cumsum, wide, cumsum, cumsum, nothing, false)                                                         \
  X(gather, gather, once, gather, gather, inputs, false)                                                          \
  X(scatter, scatter, once, scatter, scatter, inputs, false)                                                      \
  X(index_select, index_select, once, index_select, index_select, inputs, false)                                  \
  X(index_add, index_add, once, index_add, none, nothing, false)                                                  \
  X(sort, sort, once, sort, sort, outputs, false)                                                                 \
  X(tril, tril, once, tril, tril, nothing, false)                                                                 \
  X(flip, copy, same, copy, flip, nothing, false)                                                                 \
  X(softmax, softmax, rows, softmax, softmax, outputs, false)                                                     \
  X(log_softmax, log_softmax, rows, softmax, log_softmax, outputs, false)                                         \
  X(softmax_grad, softmax_grad, rows, softmax_grad, none, nothing, false)                                         \
  X(log_softmax_grad, log_softmax_grad, rows, softmax_grad, none, nothing, false)                                 \
  X(layer_norm, layer_norm, rows_wb, layer_norm, layer_norm, both, false)                                         \
  X(layer_norm_grad, layer_norm_grad, wide, layer_norm_grad, none, nothing, false)                                \
  X(embedding, embedding, each, embedding, embedding, inputs, false)                                              \
  X(embedding_grad, embedding_grad, wide, embedding_grad, none, nothing, false)                                   \
  X(embedding_add, embedding_add, each, embedding_add, none, nothing, true)                                       \
  X(cross_entropy, cross_entropy, wide, cross_entropy, cross_entropy, both, false)                                \
  X(cross_entropy_grad, cross_entropy_grad, wide, cross_entropy_grad, none, nothing, false)                       \
  X(axpy, axpy, each, onto, none, nothing, false)                                                                 \
  X(scale, scale, each, scaled, none, nothing, false)                                                             \
  X(copy, copy, each, copy, none, nothing, false)                                                                 \
  X(increment, increment, each, increment, none, nothing, false)                                                  \
  X(adamw, adamw, each, adamw, none, nothing, false)                                                              \
  X(sgd, sgd, each, sgd, none, nothing, false)                                                                    \
  X(lion, lion, each, lion, none, nothing, false)                                                                 \
  X(average, average, each, average, none, nothing, false)                                                        \
  X(grad_unscale, grad_unscale, each, grad_unscale, none, nothing, false)                                         \
  X(loss_scale, loss_scale, each, loss_scale, none, nothing, false)                                               \
  X(grad_norm, grad_norm, each, grad_norm, none, nothing, false)                                                  \
  X(grad_clip, grad_clip, each, grad_clip, none, nothing, false)                                                  \
  X(fused, fused, each, fused, none, nothing, false)                                                              \
  X(launch, launch, once, none, none, nothing, false)

namespace rille::kernels {

enum class OpId : std::uint8_t {
#define RILLE_ID(name, ...) name,
  RILLE_OPERATIONS(RILLE_ID)
#undef RILLE_ID
      count  // number of operations; also the id for "not in the table"
};

inline constexpr const char* operation_names[] = {
#define RILLE_NAME(name, ...) #name,
    RILLE_OPERATIONS(RILLE_NAME)
#undef RILLE_NAME
};
inline constexpr const char* kernel_names[] = {
#define RILLE_NAME(name, kernel, ...) #kernel,
    RILLE_OPERATIONS(RILLE_NAME)
#undef RILLE_NAME
};
constexpr const char* operation_name(OpId id) { return operation_names[int(id)]; }
// The kernel's name, on the CPU and in device code: "matmul" for OpId::linear.
constexpr const char* kernel_name(OpId id) { return kernel_names[int(id)]; }

}  // namespace rille::kernels
