// Which operation is launched how, and what a Fault means.
#include <cstdio>

#include "kernels/cuda/launches.hpp"

namespace rille::kernels::cuda {

namespace {

// X(the CPU kernel's name, the function that launches it)
// clang-format off
#define RILLE_CUDA_LAUNCHES(X) \
  X(add, binary) X(sub, binary) X(mul, binary) X(div, binary) X(pow, binary) X(maximum, binary) X(minimum, binary) \
  X(lt, binary) X(le, binary) X(gt, binary) X(ge, binary) X(eq, binary) X(ne, binary) X(atan2, binary) \
  X(floor_divide, divided) X(remainder, divided) \
  X(bitwise_and, bits) X(bitwise_or, bits) X(bitwise_xor, bits) X(bitwise_not, bits_not) \
  X(neg, unary) X(abs, unary) X(sign, unary) X(clamp, unary) X(exp, unary) X(expm1, unary) X(log, unary) \
  X(log1p, unary) X(sqrt, unary) X(rsqrt, unary) X(sin, unary) X(cos, unary) X(tan, unary) X(asin, unary) \
  X(acos, unary) X(atan, unary) X(sinh, unary) X(cosh, unary) X(erf, unary) X(floor, unary) X(ceil, unary) \
  X(round, unary) X(trunc, unary) X(tanh, unary) X(sigmoid, unary) X(relu, unary) X(gelu, unary) X(gelu_erf, unary) \
  X(silu, unary) X(leaky_relu, unary) X(elu, unary) X(softplus, unary) X(hardswish, unary) X(hardsigmoid, unary) \
  X(clamp_grad, binary) X(tanh_grad, binary) X(sigmoid_grad, binary) X(relu_grad, binary) X(abs_grad, binary) \
  X(gelu_grad, binary) X(gelu_erf_grad, binary) X(silu_grad, binary) X(leaky_relu_grad, binary) X(elu_grad, binary) \
  X(softplus_grad, binary) X(hardswish_grad, binary) X(hardsigmoid_grad, binary) \
  X(axpy, onto) X(scale, scaled) X(fused, groups) \
  X(copy, copies) X(where, chooses) X(fill, fills) X(arange, counts) X(cat, joins) X(pad, pads) \
  X(softmax, softmaxes) X(log_softmax, softmaxes) X(softmax_grad, softmax_grads) X(log_softmax_grad, softmax_grads) \
  X(cross_entropy, cross_entropies) X(cross_entropy_grad, cross_entropy_grads) \
  X(layer_norm, layer_norms) X(layer_norm_grad, layer_norm_grads) X(rms_norm, rms_norms) \
  X(rms_norm_grad, rms_norm_grads) X(batch_norm, batch_norms) X(batch_norm_grad, batch_norm_grads) \
  X(increment, increments) X(adamw, adamws) X(sgd, sgds) X(lion, lions) X(average, averages) \
  X(grad_unscale, grad_unscales) X(loss_scale, loss_scales) X(grad_norm, grad_norms) X(grad_clip, grad_clips) \
  X(uniform, uniforms) X(normal, normals) X(integers, integer_draws) X(dropout, dropouts) \
  X(multinomial, multinomials) \
  X(embedding, embeddings) X(embedding_grad, embedding_grads) X(embedding_add, embedding_adds) X(gather, gathers) \
  X(scatter, scatters) X(index_select, index_selects) X(index_add, index_adds) X(sort, sorts) X(tril, trils) \
  X(sum, sums) X(prod, prods) X(amax, amaxes) X(amin, amins) X(argmax, argmaxes) X(argmin, argmins) \
  X(cumsum, cumsums) X(prod_grad, prod_grads) X(matmul, products) X(matmul_activated, activated_products) \
  X(attention, attentions) X(attention_grad, attention_grads) X(attention_masked, masked_attentions) \
  X(attention_masked_grad, masked_attention_grads) X(rope, ropes) \
  X(convolution, convolutions) X(convolution_grad_input, convolution_input_grads) \
  X(convolution_grad_weight, convolution_weight_grads) X(max_pool, max_pools) X(max_pool_grad, max_pool_grads) \
  X(avg_pool, avg_pools) X(avg_pool_grad, avg_pool_grads) X(fourier, fouriers)
// clang-format on

struct Row {
  const char* kernel;
  Launch launch;
};
constexpr Row rows[] = {
#define RILLE_ROW(kernel, function) \
  {#kernel, [](const Call& c, Launcher& l) { \
     static constexpr Names names = RILLE_NAMES(#kernel); \
     function(c, l, names); \
   }},
    RILLE_CUDA_LAUNCHES(RILLE_ROW)
#undef RILLE_ROW
};

}  // namespace

Launch find_launch(const char* kernel) {
  for (const Row& r : rows) if (std::strcmp(r.kernel, kernel) == 0) return r.launch;
  return nullptr;
}

void describe(const Fault& f, char* text, std::size_t bytes) {
  const auto number = [&](const char* who) {
    std::snprintf(text, bytes, "%s: number %lld at position %lld; there are places 0 to %lld\n"
                  "these numbers and positions count from 0", who, f.value, f.place, f.limit - 1);
  };
  double real;
  std::memcpy(&real, &f.value, 8);
  switch (FaultCode(f.code)) {
    case no_fault: std::snprintf(text, bytes, "%s", ""); return;
    case floor_divide_by_zero:
    case remainder_by_zero:
      std::snprintf(text, bytes, "%s: %s divided by zero",
                    f.code == remainder_by_zero ? "remainder" : "floor_divide", name_of(DType(f.type)));
      return;
    case cross_entropy_label:
      std::snprintf(text, bytes, "cross_entropy: label %lld at row %lld; there are classes 0 to %lld\n"
                    "labels and rows count from 0; rows whose label is ignore_index, -100, do not count",
                    f.value, f.place, f.limit - 1);
      return;
    case embedding_id:
      std::snprintf(text, bytes, "embedding: id %lld at position %lld; the table has rows 0 to %lld\n"
                    "ids and positions count from 0", f.value, f.place, f.limit - 1);
      return;
    case gather_number: return number("gather");
    case scatter_number: return number("scatter");
    case scatter_add_number: return number("scatter_add");
    case index_select_number: return number("index_select");
    case index_add_number: return number("index_add");
    case multinomial_weight:
      std::snprintf(text, bytes, "multinomial: weight %g at row %lld, place %lld; weights must be >= 0", real, f.place,
                    f.limit);
      return;
    case multinomial_sum:
      std::snprintf(text, bytes, "multinomial: the weights of row %lld sum to %g", f.place, real);
      return;
  }
  std::snprintf(text, bytes, "a kernel on the GPU reports fault %u", f.code);
}

}  // namespace rille::kernels::cuda
