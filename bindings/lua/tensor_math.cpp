// Tensor methods that compute: element by element, products, reductions, what networks need, and writes in place.
// One row per operation; a number may stand for either operand where PyTorch allows it.
#include "bindings/lua/tensor.hpp"

namespace rille::lua {

namespace {

using T = const Tensor&;

struct Unary { const char* name; Result<Tensor> (*fn)(T); };
struct Binary {
  const char* name;
  Result<Tensor> (*tensors)(T, T);
  Result<Tensor> (*number_right)(T, double);
  Result<Tensor> (*number_left)(T, double);
};
struct Reduction { const char* name; Result<Tensor> (*fn)(T, const std::vector<int>&, bool); };

template <const Unary& U>
Result<int> unary(lua_State* L) {
  return give(L, U.fn(check_tensor(L, 1, U.name)));
}

template <const Binary& B>
Result<int> binary(lua_State* L) {
  tensor_state(L);
  if (!test_tensor(L, 1)) {  // 2 - t
    double n = check_number(L, 1, B.name);
    return give(L, B.number_left(check_tensor(L, 2, B.name), n));
  }
  Tensor& a = check_tensor(L, 1, B.name);
  if (lua_type(L, 2) == LUA_TNUMBER) return give(L, B.number_right(a, lua_tonumber(L, 2)));
  return give(L, B.tensors(a, check_tensor(L, 2, B.name)));
}

// (dims, {keepdim = true}) or (dims, true)
bool keep_dims(lua_State* L, int index, const char* what) {
  if (lua_isnoneornil(L, index)) return false;
  if (!lua_istable(L, index)) return check_bool(L, index, what);
  check_options(L, index, what, {"keepdim"});
  return option_bool(L, index, "keepdim", false);
}

template <const Reduction& R>
Result<int> reduction(lua_State* L) {
  Tensor& a = check_tensor(L, 1, R.name);
  tensor_state(L);
  auto dims = check_dims(L, 2, R.name);
  return give(L, R.fn(a, dims, keep_dims(L, 3, R.name)));
}

constexpr Unary neg_{"neg", tensor::neg}, abs_{"abs", tensor::abs}, exp_{"exp", tensor::exp},
    log_{"log", tensor::log}, sqrt_{"sqrt", tensor::sqrt}, rsqrt_{"rsqrt", tensor::rsqrt},
    tanh_{"tanh", tensor::tanh}, sigmoid_{"sigmoid", tensor::sigmoid}, relu_{"relu", tensor::relu},
    gelu_{"gelu", tensor::gelu}, multinomial_{"multinomial", tensor::multinomial};
constexpr Binary add_op{"add", tensor::add, tensor::add, tensor::add},
    sub_op{"sub", tensor::sub, tensor::sub, tensor::rsub},
    mul_op{"mul", tensor::mul, tensor::mul, tensor::mul},
    div_op{"div", tensor::div, tensor::div, tensor::rdiv},
    pow_op{"pow", tensor::pow, tensor::pow, tensor::rpow},
    maximum_op{"maximum", tensor::maximum, tensor::maximum, tensor::maximum},
    minimum_op{"minimum", tensor::minimum, tensor::minimum, tensor::minimum},
    lt_op{"lt", tensor::lt, tensor::lt, tensor::gt}, le_op{"le", tensor::le, tensor::le, tensor::ge},
    gt_op{"gt", tensor::gt, tensor::gt, tensor::lt}, ge_op{"ge", tensor::ge, tensor::ge, tensor::le},
    eq_op{"eq", tensor::eq, tensor::eq, tensor::eq}, ne_op{"ne", tensor::ne, tensor::ne, tensor::ne};
constexpr Reduction sum_{"sum", tensor::sum}, mean_{"mean", tensor::mean}, max_{"max", tensor::max},
    min_{"min", tensor::min};

Result<int> argmax(lua_State* L) {
  Tensor& a = check_tensor(L, 1, "argmax");
  tensor_state(L);
  int dim = lua_isnoneornil(L, 2) ? -1 : check_dim(L, 2, "argmax");
  return give(L, tensor::argmax(a, dim, keep_dims(L, 3, "argmax")));
}

Result<int> softmax(lua_State* L) {
  Tensor& a = check_tensor(L, 1, "softmax");
  tensor_state(L);
  return give(L, tensor::softmax(a, lua_isnoneornil(L, 2) ? -1 : check_dim(L, 2, "softmax")));
}

Result<int> log_softmax(lua_State* L) {
  Tensor& a = check_tensor(L, 1, "log_softmax");
  tensor_state(L);
  return give(L, tensor::log_softmax(a, lua_isnoneornil(L, 2) ? -1 : check_dim(L, 2, "log_softmax")));
}

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
  check_options(L, 3, "cross_entropy", {"ignore_index"});
  double ignore = option_number(L, 3, "ignore_index").value_or(-100);
  return give(L, tensor::cross_entropy(logits, labels, static_cast<std::int64_t>(ignore)));
}

Result<int> attention(lua_State* L) {  // q:scaled_dot_product_attention(k, v, {causal=, scale=})
  Tensor& q = check_tensor(L, 1, "scaled_dot_product_attention");
  tensor_state(L);
  Tensor &k = check_tensor(L, 2, "attention's keys"), &v = check_tensor(L, 3, "attention's values");
  check_options(L, 4, "scaled_dot_product_attention", {"causal", "scale"});
  bool causal = lua_istable(L, 4) && option_bool(L, 4, "causal", false);
  return give(L, tensor::scaled_dot_product_attention(q, k, v, causal, option_number(L, 4, "scale").value_or(0)));
}

Result<int> dropout(lua_State* L) {  // x:dropout(p, training)
  Tensor& x = check_tensor(L, 1, "dropout");
  tensor_state(L);
  double p = check_number(L, 2, "dropout's probability");
  return give(L, tensor::dropout(x, p, lua_isnoneornil(L, 3) || check_bool(L, 3, "dropout's training")));
}

Result<int> where(lua_State* L) {  // condition:where(a, b)
  Tensor& condition = check_tensor(L, 1, "where");
  tensor_state(L);
  return give(L, tensor::where(condition, check_tensor(L, 2, "where"), check_tensor(L, 3, "where")));
}

// In place: the tensor itself comes back.
Result<int> myself(lua_State* L, Result<void> done) {
  if (!done) return at_line(L, std::move(done).error());
  lua_settop(L, 1);
  return 1;
}

Result<int> add_in_place(lua_State* L) {
  Tensor& a = check_tensor(L, 1, "add_");
  tensor_state(L);
  double alpha = lua_isnoneornil(L, 3) ? 1 : check_number(L, 3, "add_'s factor");
  return myself(L, tensor::add_(a, check_tensor(L, 2, "add_"), alpha));
}

Result<int> mul_in_place(lua_State* L) {
  Tensor& a = check_tensor(L, 1, "mul_");
  tensor_state(L);
  if (lua_type(L, 2) == LUA_TNUMBER) return myself(L, tensor::mul_(a, lua_tonumber(L, 2)));
  return myself(L, tensor::mul_(a, check_tensor(L, 2, "mul_")));
}

Result<int> copy_in_place(lua_State* L) {
  Tensor& a = check_tensor(L, 1, "copy_");
  tensor_state(L);
  return myself(L, tensor::copy_(a, check_tensor(L, 2, "copy_")));
}

Result<int> fill_in_place(lua_State* L) {
  Tensor& a = check_tensor(L, 1, "fill_");
  tensor_state(L);
  return myself(L, tensor::fill_(a, check_number(L, 2, "fill_")));
}

Result<int> zero_in_place(lua_State* L) {
  Tensor& a = check_tensor(L, 1, "zero_");
  tensor_state(L);
  return myself(L, tensor::zero_(a));
}

}  // namespace

std::vector<Function> math_methods() {
  return {{"neg", bind<unary<neg_>>},
          {"abs", bind<unary<abs_>>},
          {"exp", bind<unary<exp_>>},
          {"log", bind<unary<log_>>},
          {"sqrt", bind<unary<sqrt_>>},
          {"rsqrt", bind<unary<rsqrt_>>},
          {"tanh", bind<unary<tanh_>>},
          {"sigmoid", bind<unary<sigmoid_>>},
          {"relu", bind<unary<relu_>>},
          {"gelu", bind<unary<gelu_>>},
          {"multinomial", bind<unary<multinomial_>>},
          {"add", bind<binary<add_op>>},
          {"sub", bind<binary<sub_op>>},
          {"mul", bind<binary<mul_op>>},
          {"div", bind<binary<div_op>>},
          {"pow", bind<binary<pow_op>>},
          {"maximum", bind<binary<maximum_op>>},
          {"minimum", bind<binary<minimum_op>>},
          {"lt", bind<binary<lt_op>>},
          {"le", bind<binary<le_op>>},
          {"gt", bind<binary<gt_op>>},
          {"ge", bind<binary<ge_op>>},
          {"eq", bind<binary<eq_op>>},
          {"ne", bind<binary<ne_op>>},
          {"sum", bind<reduction<sum_>>},
          {"mean", bind<reduction<mean_>>},
          {"max", bind<reduction<max_>>},
          {"min", bind<reduction<min_>>},
          {"argmax", bind<argmax>},
          {"softmax", bind<softmax>},
          {"log_softmax", bind<log_softmax>},
          {"matmul", bind<matmul>},
          {"linear", bind<linear>},
          {"layer_norm", bind<layer_norm>},
          {"embedding", bind<embedding>},
          {"cross_entropy", bind<cross_entropy>},
          {"scaled_dot_product_attention", bind<attention>},
          {"dropout", bind<dropout>},
          {"where", bind<where>},
          {"add_", bind<add_in_place>},
          {"mul_", bind<mul_in_place>},
          {"copy_", bind<copy_in_place>},
          {"fill_", bind<fill_in_place>},
          {"zero_", bind<zero_in_place>}};
}

}  // namespace rille::lua
