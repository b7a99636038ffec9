// Tensor methods for networks: products, normalisation, tables, losses, attention.
#include "bindings/lua/tensor.hpp"

namespace rille::lua {

namespace {

Result<int> matmul(lua_State* L) {
  Tensor& a = check_tensor(L, 1, "matmul");
  tensor_state(L);
  return give(L, tensor::matmul(a, check_tensor(L, 2, "matmul")));
}

Tensor optional_tensor(lua_State* L, int index, const char* what) {
  return lua_isnoneornil(L, index) ? Tensor() : check_tensor(L, index, what);
}

Result<int> linear(lua_State* L) {
  Tensor& x = check_tensor(L, 1, "linear");
  tensor_state(L);
  return give(L, tensor::linear(x, check_tensor(L, 2, "linear's weight"), optional_tensor(L, 3, "linear's bias")));
}

Result<int> layer_norm(lua_State* L) {
  Tensor& x = check_tensor(L, 1, "layer_norm");
  tensor_state(L);
  Tensor weight = optional_tensor(L, 2, "layer_norm's weight"), bias = optional_tensor(L, 3, "layer_norm's bias");
  return give(L, tensor::layer_norm(x, weight, bias,
                                    lua_isnoneornil(L, 4) ? 1e-5 : check_number(L, 4, "layer_norm's eps")));
}

Result<int> embedding(lua_State* L) {  // ids:embedding(weight)
  Tensor& ids = check_tensor(L, 1, "embedding");
  tensor_state(L);
  return give(L, tensor::embedding(check_tensor(L, 2, "embedding's weight"), ids));
}

Result<int> cross_entropy(lua_State* L) {
  Tensor& logits = check_tensor(L, 1, "cross_entropy");
  tensor_state(L);
  Tensor& labels = check_tensor(L, 2, "cross_entropy's labels");
  check_options(L, 3, "cross_entropy", {"ignore_index", "label_smoothing"});
  double ignore = option_number(L, 3, "ignore_index").value_or(-100);
  double smoothing = option_number(L, 3, "label_smoothing").value_or(0);
  return give(L, tensor::cross_entropy(logits, labels, static_cast<std::int64_t>(ignore), smoothing));
}

Result<int> attention(lua_State* L) {  // q:scaled_dot_product_attention(k, v, {causal=, scale=})
  Tensor& q = check_tensor(L, 1, "scaled_dot_product_attention");
  tensor_state(L);
  Tensor &k = check_tensor(L, 2, "attention's keys"), &v = check_tensor(L, 3, "attention's values");
  check_options(L, 4, "scaled_dot_product_attention", {"causal", "scale"});
  bool causal = lua_istable(L, 4) && option_bool(L, 4, "causal", false);
  return give(L, tensor::scaled_dot_product_attention(q, k, v, causal, option_number(L, 4, "scale").value_or(0)));
}

}  // namespace

std::vector<Function> network_methods() {
  return {{"matmul", bind<matmul>}, {"linear", bind<linear>}, {"layer_norm", bind<layer_norm>},
          {"embedding", bind<embedding>}, {"cross_entropy", bind<cross_entropy>},
          {"scaled_dot_product_attention", bind<attention>}};
}

}  // namespace rille::lua
