// Tensor methods for networks: products, normalization, embeddings, losses, attention.
#include "bindings/lua/compute/tensor.hpp"

namespace rille::lua {

namespace {

Result<int> matmul(lua_State* L) {
  Tensor& a = check_self(L, "matmul", 2);
  tensor_state(L);
  return give(L, tensor::matmul(a, check_tensor(L, 2, "matmul")));
}

Result<int> einsum(lua_State* L) {  // a:einsum("ij,jk->ik", b, ...)
  std::vector<Tensor> operands{check_tensor(L, 1, "einsum")};
  tensor_state(L);
  const std::string equation(check_text(L, 2, "einsum's letters"));
  for (int i = 3; i <= lua_gettop(L); ++i) operands.push_back(check_tensor(L, i, "einsum"));
  return give(L, tensor::einsum(equation, operands));
}

Result<int> linear(lua_State* L) {
  Tensor& x = check_self(L, "linear", 3);
  tensor_state(L);
  return give(L, tensor::linear(x, check_tensor(L, 2, "linear's weight"), optional_tensor(L, 3, "linear's bias")));
}

Result<int> layer_norm(lua_State* L) {
  Tensor& x = check_self(L, "layer_norm", 4);
  tensor_state(L);
  Tensor weight = optional_tensor(L, 2, "layer_norm's weight"), bias = optional_tensor(L, 3, "layer_norm's bias");
  return give(
      L, tensor::layer_norm(x, weight, bias, lua_isnoneornil(L, 4) ? 1e-5 : check_number(L, 4, "layer_norm's eps")));
}

Result<int> embedding(lua_State* L) {  // ids:embedding(weight)
  Tensor& ids = check_self(L, "embedding", 2);
  tensor_state(L);
  return give(L, tensor::embedding(check_tensor(L, 2, "embedding's weight"), ids));
}

tensor::Reduce reduce_from(lua_State* L, const char* what, std::string_view how) {
  if (how == "mean") return tensor::Reduce::mean;
  if (how == "sum") return tensor::Reduce::sum;
  if (how == "none") return tensor::Reduce::none;
  raise_invalid(L, fmt::format("{}: '{}' ({})", what, how, script_position(L)), "\"mean\", \"sum\" or \"none\"");
}

tensor::LabelLoss label_loss(lua_State* L, const char* what) {
  tensor::LabelLoss how;
  how.ignore_index = static_cast<std::int64_t>(option_number(L, 3, "ignore_index").value_or(-100));
  how.weight = option_tensor(L, 3, "weight");
  how.reduce = reduce_from(L, what, option_text(L, 3, "reduction").value_or("mean"));
  return how;
}

Result<int> cross_entropy(lua_State* L) {  // logits:cross_entropy(labels, {weight =, reduction =, ..})
  Tensor& logits = check_self(L, "cross_entropy", 3);
  tensor_state(L);
  Tensor& labels = check_tensor(L, 2, "cross_entropy's labels");
  check_options(L, 3, "cross_entropy", {"ignore_index", "label_smoothing", "reduction", "weight"});
  tensor::LabelLoss how = label_loss(L, "cross_entropy's reduction");
  how.label_smoothing = option_number(L, 3, "label_smoothing").value_or(0);
  return give(L, tensor::cross_entropy(logits, labels, how));
}

Result<int> attention(lua_State* L) {  // q:scaled_dot_product_attention(k, v, {causal=, scale=})
  Tensor& q = check_self(L, "scaled_dot_product_attention", 4);
  tensor_state(L);
  Tensor &k = check_tensor(L, 2, "attention's keys"), &v = check_tensor(L, 3, "attention's values");
  check_options(L, 4, "scaled_dot_product_attention", {"causal", "scale", "mask", "lengths"});
  tensor::Attention how;
  how.causal = lua_istable(L, 4) && option_bool(L, 4, "causal", false);
  how.scale = option_number(L, 4, "scale").value_or(0);
  how.mask = option_tensor(L, 4, "mask");
  how.lengths = option_tensor(L, 4, "lengths");
  return give(L, tensor::scaled_dot_product_attention(q, k, v, how));
}

Result<int> rms_norm(lua_State* L) {  // x:rms_norm(weight, eps)
  Tensor& x = check_self(L, "rms_norm", 3);
  tensor_state(L);
  Tensor weight = optional_tensor(L, 2, "rms_norm's weight");
  return give(L, tensor::rms_norm(x, weight, lua_isnoneornil(L, 3) ? 1e-6 : check_number(L, 3, "rms_norm's eps")));
}

Result<int> rope(lua_State* L) {  // x:rope(cos, sin, {interleaved =})
  Tensor& x = check_self(L, "rope", 4);
  tensor_state(L);
  Tensor &cos = check_tensor(L, 2, "rope's cosines"), &sin = check_tensor(L, 3, "rope's sines");
  check_options(L, 4, "rope", {"interleaved"});
  return give(L, tensor::rope(x, cos, sin, lua_istable(L, 4) && option_bool(L, 4, "interleaved", false)));
}

Result<int> nll_loss(lua_State* L) {  // log_probabilities:nll_loss(labels, {weight =, reduction =, ignore_index =})
  Tensor& x = check_self(L, "nll_loss", 3);
  tensor_state(L);
  Tensor& labels = check_tensor(L, 2, "nll_loss's labels");
  check_options(L, 3, "nll_loss", {"ignore_index", "reduction", "weight"});
  return give(L, tensor::nll_loss(x, labels, label_loss(L, "nll_loss's reduction")));
}

struct Loss {
  const char* name;
  Result<Tensor> (*fn)(const Tensor&, const Tensor&, tensor::Reduce);
};
constexpr Loss mse_{"mse_loss", tensor::mse_loss}, l1_{"l1_loss", tensor::l1_loss},
    smooth_l1_{"smooth_l1_loss", tensor::smooth_l1_loss},
    bce_{"binary_cross_entropy_with_logits", tensor::binary_cross_entropy_with_logits};

template <const Loss& F>
Result<int> loss(lua_State* L) {  // x:mse_loss(target, "mean")
  Tensor& x = check_self(L, F.name, 3);
  tensor_state(L);
  Tensor& target = check_tensor(L, 2, F.name);
  return give(L, F.fn(x, target, reduce_from(L, F.name, lua_isnoneornil(L, 3) ? "mean" : check_text(L, 3, F.name))));
}

}  // namespace

std::vector<Function> network_methods() {
  return {{"einsum", bind<einsum>},
          {"rms_norm", bind<rms_norm>},
          {"rope", bind<rope>},
          {"nll_loss", bind<nll_loss>},
          {"mse_loss", bind<loss<mse_>>},
          {"l1_loss", bind<loss<l1_>>},
          {"smooth_l1_loss", bind<loss<smooth_l1_>>},
          {"binary_cross_entropy_with_logits", bind<loss<bce_>>},
          {"matmul", bind<matmul>},
          {"linear", bind<linear>},
          {"layer_norm", bind<layer_norm>},
          {"embedding", bind<embedding>},
          {"cross_entropy", bind<cross_entropy>},
          {"scaled_dot_product_attention", bind<attention>}};
}

}  // namespace rille::lua
