#include "runtime/tensor/optim.hpp"

#include <set>

#include <fmt/format.h>

#include "runtime/tensor/record.hpp"

namespace rille::tensor {

namespace {

Result<void> check_parameter(const std::string& name, const Tensor& p, DType dtype, std::set<const void*>& seen) {
  const auto refuse = [&](std::string why) {
    return make_error(ErrorKind::invalid, fmt::format("optimiser: parameter {}: {}", name, why));
  };
  if (!p) return refuse("an empty tensor handle");
  if (!p.is_leaf() || !p.requires_grad()) return refuse("not a leaf that requires grad");
  if (p.dtype() != DType::f32 && p.dtype() != DType::f64)
    return refuse(fmt::format("{}: only f32 and f64", name_of(p.dtype())));
  if (p.dtype() != dtype) return refuse(fmt::format("{} among {}", name_of(p.dtype()), name_of(dtype)));
  if (!p.is_contiguous()) return refuse("not contiguous");
  if (!seen.insert(p.impl().get()).second) return refuse("given twice");
  return success();
}

}  // namespace

Result<Optimizer> Optimizer::adamw(std::vector<ParameterGroup> groups, AdamWOptions options) {
  const auto fraction = [](double b) { return b >= 0 && b < 1; };
  if (!fraction(options.beta1) || !fraction(options.beta2) || !(options.eps >= 0)) {
    return make_error(ErrorKind::invalid,
                      fmt::format("adamw: betas {} and {}, eps {}: betas lie in [0, 1), eps is not negative",
                                  options.beta1, options.beta2, options.eps));
  }
  return make(Rule::adamw, std::move(groups), options, {});
}

Result<Optimizer> Optimizer::sgd(std::vector<ParameterGroup> groups, SgdOptions options) {
  if (!(options.momentum >= 0) || (options.nesterov && options.momentum == 0)) {
    return make_error(ErrorKind::invalid, fmt::format("sgd: momentum {}{}", options.momentum,
                                                      options.nesterov ? " with nesterov" : ""));
  }
  return make(Rule::sgd, std::move(groups), {}, options);
}

Result<Optimizer> Optimizer::make(Rule rule, std::vector<ParameterGroup> groups, AdamWOptions a, SgdOptions s) {
  Optimizer o;
  o.rule_ = rule;
  o.adamw_ = a;
  o.sgd_ = s;
  const Tensor* first = nullptr;
  for (const auto& group : groups) if (!group.parameters.empty() && !first) first = &group.parameters[0].second;
  if (!first || !*first) return make_error(ErrorKind::invalid, "optimiser: no parameters");
  Graph& g = first->graph();
  NoGrad guard(g);
  std::set<const void*> seen;
  RILLE_TRY(o.step_, zeros(g, {}, DType::i64));
  o.state_.emplace_back("step", o.step_);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    Group group;
    group.weight_decay = groups[i].weight_decay;
    RILLE_TRY(group.lr, full(g, {}, groups[i].lr, first->dtype()));
    o.state_.emplace_back(fmt::format("lr.{}", i), group.lr);
    for (auto& [name, p] : groups[i].parameters) {
      RILLE_CHECK(check_parameter(name, p, first->dtype(), seen));
      Slot slot{p, {}, {}};
      if (rule == Rule::adamw || s.momentum != 0) {
        RILLE_TRY(slot.m, zeros(g, p.shape(), p.dtype()));
        o.state_.emplace_back((rule == Rule::adamw ? "exp_avg." : "momentum.") + name, slot.m);
      }
      if (rule == Rule::adamw) {
        RILLE_TRY(slot.v, zeros(g, p.shape(), p.dtype()));
        o.state_.emplace_back("exp_avg_sq." + name, slot.v);
      }
      group.slots.push_back(std::move(slot));
    }
    o.groups_.push_back(std::move(group));
  }
  return o;
}

Result<void> Optimizer::step() {
  Graph& g = step_.graph();
  NoGrad guard(g);
  RILLE_CHECK(record(g, OpId::increment, {}, {}, {step_}, true));
  for (auto& group : groups_) {
    std::vector<Tensor> in, p, m, v;
    if (rule_ == Rule::adamw) in.push_back(step_);
    in.push_back(group.lr);
    for (auto& slot : group.slots) {
      const Tensor grad = slot.parameter.grad();
      if (!grad) continue;
      in.push_back(grad);
      p.push_back(slot.parameter);
      if (slot.m) m.push_back(slot.m);
      if (slot.v) v.push_back(slot.v);
    }
    if (p.empty()) continue;
    kernels::Attrs attrs;
    attrs.i[0] = std::int64_t(p.size());
    if (rule_ == Rule::adamw) {
      attrs.f[0] = adamw_.beta1;
      attrs.f[1] = adamw_.beta2;
      attrs.f[2] = adamw_.eps;
      attrs.f[3] = group.weight_decay;
    } else {
      attrs.f[0] = sgd_.momentum;
      attrs.f[1] = group.weight_decay;
      attrs.i[1] = sgd_.nesterov;
    }
    p.insert(p.end(), m.begin(), m.end());
    p.insert(p.end(), v.begin(), v.end());
    RILLE_CHECK(record(g, rule_ == Rule::adamw ? OpId::adamw : OpId::sgd, attrs, in, p, true));
  }
  zero_grad();
  return success();
}

void Optimizer::zero_grad() {
  for (auto& group : groups_) for (auto& slot : group.slots) set_leaf_grad(slot.parameter.impl(), {});
}

Result<void> Optimizer::set_lr(double lr) {
  for (std::size_t i = 0; i < groups_.size(); ++i) RILLE_CHECK(set_lr(i, lr));
  return success();
}

Result<void> Optimizer::set_lr(std::size_t group, double lr) {
  if (group >= groups_.size())
    return make_error(ErrorKind::invalid, fmt::format("optimiser: group {} of {}", group, groups_.size()));
  return fill_(groups_[group].lr, lr);
}

std::vector<Tensor> Optimizer::parameters() const {
  std::vector<Tensor> all;
  for (const auto& group : groups_) for (const auto& slot : group.slots) all.push_back(slot.parameter);
  return all;
}

}  // namespace rille::tensor
