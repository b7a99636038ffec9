// The Optimizer object for rille.optim; runtime/compute/tensor/optimizer.hpp does the work.
#include "runtime/compute/tensor/optimizer.hpp"

#include "bindings/lua/compute/state.hpp"

namespace rille::lua {

namespace {

using tensor::Optimizer;

struct OptimizerHandle {
  std::string rule;
  Optimizer optimizer;
};

// Calls f(name, setting) for each setting of an optimizer's rule (Adam, SGD, ..) that a script may change.
template <class F>
void each_setting(tensor::Adam& how, const F& f) {
  f("beta1", how.beta1), f("beta2", how.beta2), f("eps", how.eps);
}
template <class F>
void each_setting(tensor::Sgd& how, const F& f) {
  f("momentum", how.momentum), f("nesterov", how.nesterov);
}
template <class F>
void each_setting(tensor::Lion& how, const F& f) {
  f("beta1", how.beta1), f("beta2", how.beta2);
}
template <class F>
void each_setting(tensor::Muon& how, const F& f) {
  f("momentum", how.momentum), f("nesterov", how.nesterov), f("match_rms", how.match_rms);
  f("iterations", how.steps), f("precision", how.precision);
}
template <class F>
void each_setting(tensor::LossScaleOptions& how, const F& f) {
  f("initial", how.initial), f("growth", how.growth), f("backoff", how.backoff), f("interval", how.interval);
}

// Reads the settings that the table at `index` contains; settings absent from the table keep their values.
struct Given {
  lua_State* L;
  int index;
  template <class T>
  void operator()(const char* key, T& value) const {
    if constexpr (std::is_same_v<T, bool>) {
      value = option_bool(L, index, key, value);
    } else if constexpr (std::is_same_v<T, DType>) {
      if (const auto name = option_text(L, index, key)) value = value_or_raise(L, parse_dtype(*name));
    } else {
      if (const auto number = option_number(L, index, key)) value = static_cast<T>(*number);
    }
  }
};

// Writes each setting into the table on top of the stack.
struct Told {
  lua_State* L;
  template <class T>
  void operator()(const char* key, const T& value) const {
    if constexpr (std::is_same_v<T, DType>) set_field(L, key, name_of(value));
    else set_field(L, key, value);
  }
};

const tensor::OptimizerRule& check_rule(lua_State* L, std::string_view name) {
  for (const auto& rule : tensor::optimizer_rules)
    if (name == rule.name) return rule;
  raise_invalid(L, fmt::format("there is no optimizer {}", name));
}

// optimizer_defaults(rule) -> { lr =, weight_decay =, and the settings of this rule, for example beta1 }
Result<int> optimizer_defaults(lua_State* L) {
  const auto& rule = check_rule(L, check_text(L, 1, "optimizer_defaults"));
  lua_newtable(L);
  set_field(L, "lr", rule.lr);
  set_field(L, "weight_decay", rule.weight_decay);
  tensor::Update update = rule.update;
  std::visit([L](auto& how) { each_setting(how, Told{L}); }, update);
  return 1;
}

// Reads a list of groups {parameters = list of {name =, tensor =}, lr =, weight_decay =, rule =, ...}.
std::vector<tensor::ParameterGroup> check_groups(lua_State* L, int index) {
  std::vector<tensor::ParameterGroup> groups;
  for (std::size_t g = 1, n = lua_objlen(L, index); g <= n; ++g) {
    lua_rawgeti(L, index, static_cast<int>(g));
    int group = lua_gettop(L);
    tensor::ParameterGroup out;
    const auto& rule = check_rule(L, option_text(L, group, "rule").value_or(""));
    out.lr = option_number(L, group, "lr").value_or(rule.lr);
    out.weight_decay = option_number(L, group, "weight_decay").value_or(rule.weight_decay);
    out.update = rule.update;
    std::visit([&](auto& how) { each_setting(how, Given{L, group}); }, out.update);
    lua_getfield(L, group, "parameters");
    int list = lua_gettop(L);
    for (std::size_t i = 1, m = lua_objlen(L, list); i <= m; ++i) {
      lua_rawgeti(L, list, static_cast<int>(i));
      lua_getfield(L, -1, "tensor");
      Tensor& t = check_tensor(L, -1, "a parameter");
      out.parameters.emplace_back(option_text(L, -2, "name").value_or(std::to_string(i)), t);
      lua_pop(L, 2);
    }
    lua_settop(L, group - 1);
    groups.push_back(std::move(out));
  }
  return groups;
}

// optimizer(name of the rule, groups, loss scale | nil) -> Optimizer
Result<int> optimizer(lua_State* L) {
  std::string rule{check_text(L, 1, "optimizer")};
  tensor_state(L);
  auto groups = check_groups(L, 2);
  std::optional<tensor::LossScaleOptions> scale;
  if (lua_istable(L, 3)) {
    scale.emplace();
    each_setting(*scale, Given{L, 3});
  }
  auto made = Optimizer::create(std::move(groups), scale);
  if (!made) return at_line(L, std::move(made).error());
  push_object(L, OptimizerHandle{std::move(rule), std::move(*made)});
  return 1;
}

Optimizer& check_optim(lua_State* L, const char* what) {
  tensor_state(L);
  return check_object<OptimizerHandle>(L, 1, what).optimizer;
}

Result<int> step(lua_State* L) {
  if (auto done = check_optim(L, "opt:step").step(); !done) return at_line(L, std::move(done).error());
  return 0;
}

Result<int> scaled(lua_State* L) {
  return give(L, check_optim(L, "opt:scaled").scaled(check_tensor(L, 2, "opt:scaled's loss")));
}

Result<int> unscale(lua_State* L) {
  if (auto done = check_optim(L, "opt:unscale").unscale(); !done) return at_line(L, std::move(done).error());
  return 0;
}

int zero_grad(lua_State* L) {
  check_optim(L, "opt:zero_grad").zero_grad();
  return 0;
}

// set_lr(lr) sets the learning rate of all groups; set_lr(lr, group) that of one group, counting from 1
Result<int> set_lr(lua_State* L) {
  Optimizer& o = check_optim(L, "opt:set_lr");
  double lr = check_number(L, 2, "opt:set_lr");
  if (lua_isnoneornil(L, 3)) {
    RILLE_CHECK(o.set_lr(lr));
    return 0;
  }
  std::int64_t group = check_integer(L, 3, "opt:set_lr's group");
  if (group < 1 || group > static_cast<std::int64_t>(o.groups()))
    raise_invalid(L, fmt::format("opt:set_lr: there is no group {}; the number of groups is {}", group, o.groups()));
  RILLE_CHECK(o.set_lr(static_cast<std::size_t>(group - 1), lr));
  return 0;
}

int named_tensors(lua_State* L) {  // returns the optimizer's state for checkpoints: a list of {name =, tensor =}
  Optimizer& o = check_optim(L, "opt:state");
  lua_newtable(L);
  int i = 0;
  for (const auto& [name, t] : o.state()) {
    lua_newtable(L);
    set_field(L, "name", name);
    push_tensor(L, t);
    lua_setfield(L, -2, "tensor");
    lua_rawseti(L, -2, ++i);
  }
  return 1;
}

// load_state(state, options); state: a list as returned by state(), or a table from name to tensor
Result<int> load(lua_State* L) {
  std::vector<StatePlace> places;
  for (const auto& [name, t] : check_optim(L, "opt:load_state").state())
    // states of older Rille versions have one step count for all parameters
    places.push_back({name, t, name.starts_with("step.") ? "step" : ""});
  return load_state(L, {"opt:load_state", "the optimizer", "", "the state belongs to another model or optimizer"},
                    std::move(places), 2);
}

std::vector<Tensor> parameters_at_1(lua_State* L, const char* what) {
  tensor_state(L);
  check_table(L, 1, what);
  std::vector<Tensor> parameters;
  for (std::size_t i = 1, n = lua_objlen(L, 1); i <= n; ++i) {
    lua_rawgeti(L, 1, static_cast<int>(i));
    if (lua_istable(L, -1)) lua_getfield(L, -1, "tensor");
    parameters.push_back(check_tensor(L, -1, what));
    lua_settop(L, 2);
  }
  return parameters;
}

// clip_grad_norm(list of tensors, max) -> the norm of all gradients before clipping
Result<int> clip_grad_norm(lua_State* L) {
  const std::vector<Tensor> parameters = parameters_at_1(L, "clip_grad_norm");
  return give(L, tensor::clip_grad_norm(parameters, check_number(L, 2, "clip_grad_norm's limit")));
}

Result<int> clip_grad_value(lua_State* L) {  // clip_grad_value(list of tensors, limit)
  const std::vector<Tensor> parameters = parameters_at_1(L, "clip_grad_value");
  Result<> clipped = tensor::clip_grad_value(parameters, check_number(L, 2, "clip_grad_value's limit"));
  if (!clipped) return at_line(L, std::move(clipped).error());
  return 0;
}

std::vector<Tensor> check_parameters(lua_State* L, int index, const char* what) {
  check_table(L, index, what);
  std::vector<Tensor> out;
  for (std::size_t i = 1, n = lua_objlen(L, index); i <= n; ++i) {
    lua_rawgeti(L, index, static_cast<int>(i));
    out.push_back(check_tensor(L, -1, what));
    lua_pop(L, 1);
  }
  return out;
}

// average(averages, values, decay, steps | nil): moves each average towards its value
Result<int> average(lua_State* L) {
  tensor_state(L);
  const auto averages = check_parameters(L, 1, "average"), values = check_parameters(L, 2, "average");
  const double decay = check_number(L, 3, "average's decay");
  if (auto done = tensor::average_(averages, values, decay, optional_tensor(L, 4, "average's steps")); !done)
    return at_line(L, std::move(done).error());
  return 0;
}

int optim_to_string(lua_State* L) {
  auto& h = check_object<OptimizerHandle>(L, 1, "optimizer");
  push(L, fmt::format("Optimizer {} of {} parameters", h.rule, h.optimizer.parameters().size()));
  return 1;
}

}  // namespace

bool optimizer_parameters(lua_State* L, int index, std::vector<Tensor>& out) {
  const auto* o = test_object<OptimizerHandle>(L, index);
  if (o) out = o->optimizer.parameters();
  return o != nullptr;
}

void add_optimizer_natives(lua_State* L) {
  define_class<OptimizerHandle>(L, {.name = "Optimizer",
                                    .methods = {{"step", bind<step>},
                                                {"zero_grad", bind<zero_grad>},
                                                {"set_lr", bind<set_lr>},
                                                {"state", bind<named_tensors>},
                                                {"scaled", bind<scaled>},
                                                {"unscale", bind<unscale>},
                                                {"load_state", bind<load>}},
                                    .metamethods = {{"__tostring", bind<optim_to_string>}}});
  set_functions(L, {{"optimizer", bind<optimizer>},
                    {"optimizer_defaults", bind<optimizer_defaults>},
                    {"clip_grad_norm", bind<clip_grad_norm>},
                    {"clip_grad_value", bind<clip_grad_value>},
                    {"average", bind<average>}});
}

}  // namespace rille::lua
