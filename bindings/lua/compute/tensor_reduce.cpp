// Tensor methods that reduce dimensions (sum, max, ..) or scan along a dimension (cumsum, ..).
#include <cmath>

#include "bindings/lua/compute/tensor.hpp"

namespace rille::lua {

namespace {

using T = const Tensor&;

struct Reduction {
  const char* name;
  Result<Tensor> (*fn)(T, const std::vector<int>&, bool);
};
struct ArgReduction {
  const char* name;
  Result<Tensor> (*fn)(T, int, bool);
};
struct Along {
  const char* name;
  Result<Tensor> (*fn)(T, int);
};
struct Spread {
  const char* name;
  Result<Tensor> (*fn)(T, const std::vector<int>&, double, bool);
};

// Reads keepdim from x:sum(dims, {keepdim = true}), x:sum({keepdim = true}) or x:sum(dims, true).
bool keep_dims(lua_State* L, int index, const char* what) {
  if (lua_isnoneornil(L, index)) return false;
  if (!lua_istable(L, index)) return check_bool(L, index, what);
  check_options(L, index, what, {"keepdim"});
  return option_bool(L, index, "keepdim", false);
}

template <const Reduction& R>
Result<int> reduction(lua_State* L) {
  Tensor& a = check_self(L, R.name, 3);
  tensor_state(L);
  options_may_stand_first(L, 2, R.name);
  auto dims = check_dims(L, 2, R.name);
  return give(L, R.fn(a, dims, keep_dims(L, 3, R.name)));
}

// max and min: given a single dimension, they return values and indices; else the values alone.
template <const Reduction& R, const ArgReduction& P>
Result<int> extreme(lua_State* L) {
  Tensor& a = check_self(L, R.name, 3);
  tensor_state(L);
  options_may_stand_first(L, 2, R.name);
  auto dims = check_dims(L, 2, R.name);
  bool keep = keep_dims(L, 3, R.name);
  RILLE_TRY(const int results, give(L, R.fn(a, dims, keep)));
  if (lua_type(L, 2) != LUA_TNUMBER) return results;
  RILLE_TRY(const int more, give(L, P.fn(a, dims[0], keep)));
  return results + more;
}

template <const ArgReduction& P>
Result<int> place(lua_State* L) {
  Tensor& a = check_self(L, P.name, 3);
  tensor_state(L);
  options_may_stand_first(L, 2, P.name);
  int dim = lua_isnoneornil(L, 2) ? -1 : check_dim(L, 2, P.name);
  return give(L, P.fn(a, dim, keep_dims(L, 3, P.name)));
}

template <const Along& A>
Result<int> along(lua_State* L) {
  Tensor& a = check_self(L, A.name, 2);
  tensor_state(L);
  return give(L, A.fn(a, lua_isnoneornil(L, 2) ? -1 : check_dim(L, 2, A.name)));
}

template <const Spread& S>
Result<int> spread(lua_State* L) {  // x:std or x:var(dims, {correction = 1, keepdim = false})
  Tensor& a = check_self(L, S.name, 3);
  tensor_state(L);
  options_may_stand_first(L, 2, S.name);
  auto dims = check_dims(L, 2, S.name);
  if (!lua_istable(L, 3)) return give(L, S.fn(a, dims, 1, keep_dims(L, 3, S.name)));
  check_options(L, 3, S.name, {"correction", "keepdim"});
  return give(L, S.fn(a, dims, option_number(L, 3, "correction").value_or(1), option_bool(L, 3, "keepdim", false)));
}

Result<int> norm(lua_State* L) {  // x:norm(p, dims, keepdim)
  Tensor& a = check_self(L, "norm", 4);
  tensor_state(L);
  options_may_stand_first(L, 2, "norm");
  options_may_stand_first(L, 3, "norm");
  double p = lua_isnoneornil(L, 2) ? 2 : check_number(L, 2, "norm's p");
  auto dims = check_dims(L, 3, "norm");
  return give(L, tensor::norm(a, p, dims, keep_dims(L, 4, "norm")));
}

constexpr Reduction sum_{"sum", tensor::sum}, mean_{"mean", tensor::mean}, max_{"max", tensor::max},
    min_{"min", tensor::min}, prod_{"prod", tensor::prod}, any_{"any", tensor::any}, all_{"all", tensor::all},
    logsumexp_{"logsumexp", tensor::logsumexp};
constexpr ArgReduction argmax_{"argmax", tensor::argmax}, argmin_{"argmin", tensor::argmin};
constexpr Along softmax_{"softmax", tensor::softmax}, log_softmax_{"log_softmax", tensor::log_softmax},
    cumsum_{"cumsum", tensor::cumsum};
constexpr Spread var_{"var", tensor::var}, std_{"std", tensor::std_dev};

}  // namespace

std::vector<Function> reduce_methods() {
  return {{"sum", bind<reduction<sum_>>},        {"mean", bind<reduction<mean_>>},
          {"prod", bind<reduction<prod_>>},      {"any", bind<reduction<any_>>},
          {"all", bind<reduction<all_>>},        {"logsumexp", bind<reduction<logsumexp_>>},
          {"max", bind<extreme<max_, argmax_>>}, {"min", bind<extreme<min_, argmin_>>},
          {"argmax", bind<place<argmax_>>},      {"argmin", bind<place<argmin_>>},
          {"softmax", bind<along<softmax_>>},    {"log_softmax", bind<along<log_softmax_>>},
          {"cumsum", bind<along<cumsum_>>},      {"var", bind<spread<var_>>},
          {"std", bind<spread<std_>>},           {"norm", bind<norm>}};
}

}  // namespace rille::lua
