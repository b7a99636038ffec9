// Element-wise tensor methods and in-place writes. A table has one row per operation; an operand may be a number
// wherever PyTorch allows one.
#include <cmath>

#include "bindings/lua/compute/tensor.hpp"
#include "bindings/lua/compute/tensor_check.hpp"

namespace rille::lua {

namespace {

using T = const Tensor&;

struct Unary {
  const char* name;
  Result<Tensor> (*fn)(T);
};
struct Binary {
  const char* name;
  Result<Tensor> (*tensors)(T, T);
  Result<Tensor> (*number_right)(T, double);
  Result<Tensor> (*number_left)(T, double);
  bool alpha = false;  // whether x:add(y, alpha) exists: y is multiplied by alpha first
};
struct Pair {
  const char* name;
  Result<Tensor> (*fn)(T, T);
};

template <const Unary& U>  // Lua calls the unary minus with x as both arguments
Result<int> unary(lua_State* L) {
  return give(L, U.fn(check_self(L, U.name, lua_rawequal(L, 1, 2) ? 2 : 1)));
}

double number_or(lua_State* L, int index, const char* what, double otherwise) {
  return lua_isnoneornil(L, index) ? otherwise : check_number(L, index, what);
}

template <class F>
bool is_given(F* function) {  // avoids the compiler's warning about a constant that is compared to null
  return function != nullptr;
}

template <const Binary& B>
Result<int> binary(lua_State* L) {
  tensor_state(L);
  if (!test_tensor(L, 1)) {  // the left operand is not a tensor: 2 - t
    if (!is_given(B.number_left) || lua_type(L, 1) != LUA_TNUMBER) not_a_tensor(L, 1, B.name);
    double n = check_number(L, 1, B.name);
    check_end(L, 2, B.name);
    return give(L, B.number_left(check_tensor(L, 2, B.name), n));
  }
  Tensor& a = check_self(L, B.name, B.alpha ? 3 : 2);
  const double alpha = lua_isnoneornil(L, 3) ? 1 : check_number(L, 3, fmt::format("{}'s alpha", B.name).c_str());
  if (lua_type(L, 2) == LUA_TNUMBER) return give(L, B.number_right(a, lua_tonumber(L, 2) * alpha));
  const Tensor& b = check_tensor(L, 2, B.name);
  if (alpha == 1) return give(L, B.tensors(a, b));
  auto scaled = tensor::mul(b, alpha);
  return give(L, scaled ? B.tensors(a, *scaled) : std::move(scaled));
}

template <const Pair& P>
Result<int> pair(lua_State* L) {
  Tensor& a = check_self(L, P.name, 2);
  tensor_state(L);
  return give(L, P.fn(a, check_tensor(L, 2, P.name)));
}

constexpr Unary neg_{"neg", tensor::neg}, abs_{"abs", tensor::abs}, sign_{"sign", tensor::sign},
    exp_{"exp", tensor::exp}, expm1_{"expm1", tensor::expm1}, exp2_{"exp2", tensor::exp2}, log2_{"log2", tensor::log2},
    log10_{"log10", tensor::log10}, log_{"log", tensor::log}, log1p_{"log1p", tensor::log1p},
    sqrt_{"sqrt", tensor::sqrt}, rsqrt_{"rsqrt", tensor::rsqrt}, square_{"square", tensor::square},
    reciprocal_{"reciprocal", tensor::reciprocal}, sin_{"sin", tensor::sin}, cos_{"cos", tensor::cos},
    tan_{"tan", tensor::tan}, asin_{"asin", tensor::asin}, acos_{"acos", tensor::acos}, atan_{"atan", tensor::atan},
    sinh_{"sinh", tensor::sinh}, cosh_{"cosh", tensor::cosh}, erf_{"erf", tensor::erf}, floor_{"floor", tensor::floor},
    ceil_{"ceil", tensor::ceil}, round_{"round", tensor::round}, trunc_{"trunc", tensor::trunc},
    tanh_{"tanh", tensor::tanh}, sigmoid_{"sigmoid", tensor::sigmoid}, relu_{"relu", tensor::relu},
    silu_{"silu", tensor::silu}, hardswish_{"hardswish", tensor::hardswish},
    hardsigmoid_{"hardsigmoid", tensor::hardsigmoid}, isnan_{"isnan", tensor::isnan}, isinf_{"isinf", tensor::isinf},
    isfinite_{"isfinite", tensor::isfinite}, logical_not_{"logical_not", tensor::logical_not},
    bitwise_not_{"bitwise_not", tensor::bitwise_not};
constexpr Pair logical_and_{"logical_and", tensor::logical_and}, logical_or_{"logical_or", tensor::logical_or},
    logical_xor_{"logical_xor", tensor::logical_xor}, bitwise_and_{"bitwise_and", tensor::bitwise_and},
    bitwise_or_{"bitwise_or", tensor::bitwise_or}, bitwise_xor_{"bitwise_xor", tensor::bitwise_xor};
constexpr Binary add_op{"add", tensor::add, tensor::add, tensor::add, true},
    sub_op{"sub", tensor::sub, tensor::sub, tensor::rsub, true}, mul_op{"mul", tensor::mul, tensor::mul, tensor::mul},
    div_op{"div", tensor::div, tensor::div, tensor::rdiv}, pow_op{"pow", tensor::pow, tensor::pow, tensor::rpow},
    atan2_op{"atan2", tensor::atan2, tensor::atan2, nullptr},
    floor_divide_op{"floor_divide", tensor::floor_divide, tensor::floor_divide, tensor::rfloor_divide},
    remainder_op{"remainder", tensor::remainder, tensor::remainder, tensor::rremainder},
    maximum_op{"maximum", tensor::maximum, tensor::maximum, tensor::maximum},
    minimum_op{"minimum", tensor::minimum, tensor::minimum, tensor::minimum},
    lt_op{"lt", tensor::lt, tensor::lt, tensor::gt}, le_op{"le", tensor::le, tensor::le, tensor::ge},
    gt_op{"gt", tensor::gt, tensor::gt, tensor::lt}, ge_op{"ge", tensor::ge, tensor::ge, tensor::le},
    eq_op{"eq", tensor::eq, tensor::eq, tensor::eq}, ne_op{"ne", tensor::ne, tensor::ne, tensor::ne};
Result<int> gelu(lua_State* L) {  // x:gelu("none") uses the exact formula instead of the tanh approximation
  Tensor& x = check_self(L, "gelu", 2);
  tensor_state(L);
  const std::string form(lua_isnoneornil(L, 2) ? "tanh" : check_text(L, 2, "gelu's form"));
  if (form != "tanh" && form != "none")
    raise_invalid(L, fmt::format("gelu: form '{}' ({})", form, script_position(L)),
                  "\"tanh\" or \"none\", the exact one");
  return give(L, tensor::gelu(x, form == "none"));
}

Result<int> leaky_relu(lua_State* L) {
  Tensor& x = check_self(L, "leaky_relu", 2);
  tensor_state(L);
  return give(L, tensor::leaky_relu(x, number_or(L, 2, "leaky_relu's slope", 0.01)));
}

Result<int> elu(lua_State* L) {
  Tensor& x = check_self(L, "elu", 2);
  tensor_state(L);
  return give(L, tensor::elu(x, number_or(L, 2, "elu's alpha", 1)));
}

Result<int> softplus(lua_State* L) {
  Tensor& x = check_self(L, "softplus", 2);
  tensor_state(L);
  return give(L, tensor::softplus(x, number_or(L, 2, "softplus' beta", 1)));
}

Result<int> clamp(lua_State* L) {  // x:clamp(low, high); nil: no bound on that side
  Tensor& x = check_self(L, "clamp", 3);
  tensor_state(L);
  std::optional<double> low, high;
  if (!lua_isnoneornil(L, 2)) low = check_number(L, 2, "clamp's lower bound");
  if (!lua_isnoneornil(L, 3)) high = check_number(L, 3, "clamp's upper bound");
  return give(L, tensor::clamp(x, low, high));
}

Result<int> dropout(lua_State* L) {  // x:dropout(p, training)
  Tensor& x = check_self(L, "dropout", 3);
  tensor_state(L);
  double p = check_number(L, 2, "dropout's probability");
  return give(L, tensor::dropout(x, p, lua_isnoneornil(L, 3) || check_bool(L, 3, "dropout's training")));
}

// p:multinomial() draws one index per row of p; p:multinomial(n, {replacement = true}) draws n indices per row.
Result<int> multinomial(lua_State* L) {
  Tensor& p = check_self(L, "multinomial", 3);
  tensor_state(L);
  options_may_stand_first(L, 2, "multinomial");
  check_options(L, 3, "multinomial", {"replacement"});
  if (lua_isnoneornil(L, 2)) return give(L, tensor::multinomial(p));
  const std::int64_t draws = check_integer(L, 2, "multinomial's number of draws");
  if (draws > 1 && !(lua_istable(L, 3) && option_bool(L, 3, "replacement", false)))
    raise_invalid(L, fmt::format("multinomial: {} draws without replacement ({})", draws, script_position(L)),
                  "with replacement: p:multinomial(n, { replacement = true }); without, a shuffle of equal chances: "
                  "dev:rand { n }:argsort()");
  return give(L, tensor::multinomial(p, draws));
}

Result<int> masked_fill(lua_State* L) {  // x:masked_fill(mask, value)
  Tensor& x = check_self(L, "masked_fill", 3);
  tensor_state(L);
  Tensor& mask = check_tensor(L, 2, "masked_fill's mask");
  return give(L, tensor::masked_fill(x, mask, check_number(L, 3, "masked_fill's value")));
}

// Reads an operand of where(): a tensor, or a number, which becomes a tensor on the condition's device, with the
// other operand's dtype if that dtype can hold the number.
Result<Tensor> operand(lua_State* L, const Tensor& condition, int index, int other) {
  if (lua_type(L, index) != LUA_TNUMBER) return check_tensor(L, index, "where");
  const double number = lua_tonumber(L, index);
  const Tensor* t = test_tensor(L, other);
  return tensor::full(condition.graph(), {}, number, t && *t ? tensor::beside_number(t->dtype(), number) : DType::f32);
}

Result<int> where(lua_State* L) {  // condition:where(a, b)
  Tensor& condition = check_self(L, "where", 3);
  tensor_state(L);
  RILLE_TRY(const Tensor a, operand(L, condition, 2, 3));
  RILLE_TRY(const Tensor b, operand(L, condition, 3, 2));
  return give(L, tensor::where(condition, a, b));
}

// Ends an in-place method: returns the tensor that the method was called on.
Result<int> myself(lua_State* L, Result<void> done) {
  if (!done) return at_line(L, std::move(done).error());
  lua_settop(L, 1);
  return 1;
}

Result<int> add_number(lua_State* L, const char* verb, Tensor& a, double n) {
  if (!is_floating(a.dtype()) && n != std::trunc(n))
    raise_invalid(L,
                  fmt::format("{}: {} to {}: the result would not be a whole number ({})", verb, n, name_of(a.dtype()),
                              script_position(L)),
                  "convert the tensor with x:to(\"f32\"), or use a whole number");
  RILLE_TRY(const Tensor number, tensor::full(a.graph(), {}, n, a.dtype()));
  return myself(L, tensor::add_(a, number, 1));
}

Result<int> add_in_place(lua_State* L) {
  Tensor& a = check_self(L, "add_", 3);
  tensor_state(L);
  const double alpha = number_or(L, 3, "add_'s alpha", 1);
  if (lua_type(L, 2) != LUA_TNUMBER) return myself(L, tensor::add_(a, check_tensor(L, 2, "add_"), alpha));
  return add_number(L, "add_", a, lua_tonumber(L, 2) * alpha);
}

Result<int> sub_in_place(lua_State* L) {
  Tensor& a = check_self(L, "sub_", 3);
  tensor_state(L);
  const double alpha = number_or(L, 3, "sub_'s alpha", 1);
  if (lua_type(L, 2) != LUA_TNUMBER) return myself(L, tensor::sub_(a, check_tensor(L, 2, "sub_"), alpha));
  return add_number(L, "sub_", a, -lua_tonumber(L, 2) * alpha);
}

Result<int> div_in_place(lua_State* L) {
  Tensor& a = check_self(L, "div_", 2);
  tensor_state(L);
  if (lua_type(L, 2) == LUA_TNUMBER) return myself(L, tensor::div_(a, lua_tonumber(L, 2)));
  return myself(L, tensor::div_(a, check_tensor(L, 2, "div_")));
}

Result<int> mul_in_place(lua_State* L) {
  Tensor& a = check_self(L, "mul_", 2);
  tensor_state(L);
  if (lua_type(L, 2) == LUA_TNUMBER) return myself(L, tensor::mul_(a, lua_tonumber(L, 2)));
  return myself(L, tensor::mul_(a, check_tensor(L, 2, "mul_")));
}

Result<int> copy_in_place(lua_State* L) {
  Tensor& a = check_self(L, "copy_", 2);
  tensor_state(L);
  return myself(L, tensor::copy_(a, check_tensor(L, 2, "copy_")));
}

Result<int> fill_in_place(lua_State* L) {
  Tensor& a = check_self(L, "fill_", 2);
  tensor_state(L);
  return myself(L, tensor::fill_(a, check_number(L, 2, "fill_")));
}

Result<int> zero_in_place(lua_State* L) {
  Tensor& a = check_self(L, "zero_", 1);
  tensor_state(L);
  return myself(L, tensor::zero_(a));
}

}  // namespace

std::vector<Function> math_methods() {
  return {{"neg", bind<unary<neg_>>},
          {"abs", bind<unary<abs_>>},
          {"sign", bind<unary<sign_>>},
          {"exp", bind<unary<exp_>>},
          {"expm1", bind<unary<expm1_>>},
          {"exp2", bind<unary<exp2_>>},
          {"log2", bind<unary<log2_>>},
          {"log10", bind<unary<log10_>>},
          {"log", bind<unary<log_>>},
          {"log1p", bind<unary<log1p_>>},
          {"sqrt", bind<unary<sqrt_>>},
          {"rsqrt", bind<unary<rsqrt_>>},
          {"square", bind<unary<square_>>},
          {"reciprocal", bind<unary<reciprocal_>>},
          {"sin", bind<unary<sin_>>},
          {"cos", bind<unary<cos_>>},
          {"tan", bind<unary<tan_>>},
          {"asin", bind<unary<asin_>>},
          {"acos", bind<unary<acos_>>},
          {"atan", bind<unary<atan_>>},
          {"sinh", bind<unary<sinh_>>},
          {"cosh", bind<unary<cosh_>>},
          {"erf", bind<unary<erf_>>},
          {"floor", bind<unary<floor_>>},
          {"ceil", bind<unary<ceil_>>},
          {"round", bind<unary<round_>>},
          {"trunc", bind<unary<trunc_>>},
          {"tanh", bind<unary<tanh_>>},
          {"sigmoid", bind<unary<sigmoid_>>},
          {"relu", bind<unary<relu_>>},
          {"silu", bind<unary<silu_>>},
          {"hardswish", bind<unary<hardswish_>>},
          {"hardsigmoid", bind<unary<hardsigmoid_>>},
          {"isnan", bind<unary<isnan_>>},
          {"isinf", bind<unary<isinf_>>},
          {"isfinite", bind<unary<isfinite_>>},
          {"logical_not", bind<unary<logical_not_>>},
          {"bitwise_not", bind<unary<bitwise_not_>>},
          {"multinomial", bind<multinomial>},
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
          {"atan2", bind<binary<atan2_op>>},
          {"floor_divide", bind<binary<floor_divide_op>>},
          {"remainder", bind<binary<remainder_op>>},
          {"logical_and", bind<pair<logical_and_>>},
          {"logical_or", bind<pair<logical_or_>>},
          {"logical_xor", bind<pair<logical_xor_>>},
          {"bitwise_and", bind<pair<bitwise_and_>>},
          {"bitwise_or", bind<pair<bitwise_or_>>},
          {"bitwise_xor", bind<pair<bitwise_xor_>>},
          {"gelu", bind<gelu>},
          {"leaky_relu", bind<leaky_relu>},
          {"elu", bind<elu>},
          {"softplus", bind<softplus>},
          {"clamp", bind<clamp>},
          {"dropout", bind<dropout>},
          {"masked_fill", bind<masked_fill>},
          {"where", bind<where>},
          {"add_", bind<add_in_place>},
          {"sub_", bind<sub_in_place>},
          {"div_", bind<div_in_place>},
          {"mul_", bind<mul_in_place>},
          {"copy_", bind<copy_in_place>},
          {"fill_", bind<fill_in_place>},
          {"zero_", bind<zero_in_place>}};
}

}  // namespace rille::lua
