#include "runtime/compute/tensor/optimizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "runtime/compute/device/owner.hpp"
#include "runtime/compute/tensor/owner.hpp"
#include "runtime/compute/tensor/record.hpp"

namespace rille::tensor {

namespace {

DType master_dtype(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

Result<void> check_parameter(const std::string& name, const Tensor& p, DType first, std::set<const void*>& seen) {
  const auto refuse = [&](std::string why) {
    return make_error(ErrorKind::invalid, fmt::format("optimiser: parameter {}: {}", name, why));
  };
  if (!p) return refuse("an empty tensor handle");
  if (!p.is_leaf() || !p.requires_grad()) {
    return make_error(ErrorKind::invalid,
                      fmt::format("optimiser: parameter {}, {}{}, is not a leaf that requires grad", name,
                                  name_of(p.dtype()), to_string(p.shape())),
                      p.is_leaf() ? "call w:requires_grad_() first"
                                  : "an operation made this tensor: pass the tensors that it was computed from");
  }
  if (master_dtype(p.dtype()) != master_dtype(first))
    return refuse(fmt::format("{} among {}: make one optimizer for each type", name_of(p.dtype()), name_of(first)));
  if (!p.is_contiguous()) return refuse("not contiguous");
  if (!seen.insert(p.impl().get()).second) return refuse("given twice");
  return success();
}

Result<void> check_rate(double lr) {
  if (lr >= 0 && !std::isinf(lr)) return success();
  return make_error(ErrorKind::invalid, fmt::format("optimiser: lr = {}: expected 0 or more", lr),
                    "the optimizer already steps against the gradient, so the rate is positive: lr = 1e-3");
}

// Fails if no parameter has a gradient, because step() would change nothing and report no error.
Result<void> need_gradients(const std::vector<Tensor>& parameters) {
  for (const auto& p : parameters)
    if (p.grad()) return success();
  return make_error(ErrorKind::state,
                    fmt::format("opt:step: none of the {} parameters has a gradient", parameters.size()),
                    "loss:backward() comes first, after zero_grad(); an optimiser that was made before model:to(..) "
                    "still holds the old parameters: make the optimiser after model:to(..)");
}

Result<void> check_scale(const LossScaleOptions& o) {
  if (o.initial > 0 && o.growth >= 1 && o.backoff > 0 && o.backoff < 1 && o.interval >= 1) return success();
  return make_error(ErrorKind::invalid,
                    fmt::format("loss scale: initial {}, growth {}, backoff {}, interval {}: expected a positive "
                                "start, growth from 1, backoff between 0 and 1, interval from 1",
                                o.initial, o.growth, o.backoff, o.interval));
}

}  // namespace

Result<Optimizer> Optimizer::create(std::vector<ParameterGroup> groups, std::optional<LossScaleOptions> scale) {
  const Tensor* first = nullptr;
  for (const auto& group : groups) {
    RILLE_CHECK(check_settings(group.update));
    RILLE_CHECK(check_rate(group.lr));
    if (!(group.weight_decay >= 0) || std::isinf(group.weight_decay))
      return make_error(ErrorKind::invalid,
                        fmt::format("optimiser: weight_decay = {}: expected 0 or more", group.weight_decay));
    if (!group.parameters.empty() && !first) first = &group.parameters[0].second;
  }
  if (!first || !*first) return make_error(ErrorKind::invalid, "optimiser: no parameters");
  if (scale) RILLE_CHECK(check_scale(*scale));
  std::set<const void*> seen;
  for (const auto& group : groups) {
    for (const auto& [name, p] : group.parameters) RILLE_CHECK(check_parameter(name, p, first->dtype(), seen));
  }
  Optimizer o;
  Graph& g = first->graph();
  NoGrad guard(g);
  const device::OwnedBy owner(owner_here(g, fmt::format("state of {}", rule_name(groups[0].update))));
  std::int64_t counting = 1;
  for (const auto& group : groups)
    if (std::holds_alternative<Adam>(group.update)) counting += std::int64_t(group.parameters.size());
  RILLE_TRY(o.steps_, zeros(g, dims_of({counting}), DType::i64));
  RILLE_TRY(o.step_, select(o.steps_, 0, 0));
  o.state_.emplace_back("step", o.step_);
  if ((o.scaling_ = scale)) {
    RILLE_TRY(o.scale_, full(g, {}, scale->initial));
    RILLE_TRY(o.good_, zeros(g, {}, DType::i64));
    RILLE_TRY(o.odd_, zeros(g, {}));
    o.state_.emplace_back("loss_scale", o.scale_);
    o.state_.emplace_back("loss_scale.good", o.good_);
  }
  // set_lr keeps the ratio of each group's rate to the first nonzero rate; a group with rate 0 keeps 0.
  const auto moves = std::find_if(groups.begin(), groups.end(), [](const ParameterGroup& one) { return one.lr != 0; });
  const double first_lr = moves == groups.end() ? 0 : moves->lr;
  // Unnamed parameters are numbered from 1 in each group. A suffix makes equal names of state unique.
  std::set<std::string> names;
  for (std::size_t i = 0; i < groups.size(); ++i)
    for (auto& [name, tensor] : groups[i].parameters)
      while (!names.insert(name).second) name += fmt::format(".{}", i + 1);
  for (auto& group : groups) RILLE_CHECK(o.add_group(std::move(group), first_lr));
  return o;
}

Result<void> Optimizer::add_group(ParameterGroup given, double first_lr) {
  Group group;
  group.weight_decay = given.weight_decay;
  group.update = given.update;
  group.proportion = first_lr != 0 ? given.lr / first_lr : 1;
  const DType dtype = given.parameters.empty() ? DType::f32 : master_dtype(given.parameters[0].second.dtype());
  RILLE_TRY(group.lr, full(step_.graph(), {}, given.lr, dtype));
  state_.emplace_back(fmt::format("lr.{}", groups_.size()), group.lr);
  for (auto& [name, p] : given.parameters) {
    RILLE_TRY(auto slot, add_slot(name, p, group.update));
    group.slots.push_back(std::move(slot));
  }
  groups_.push_back(std::move(group));
  return success();
}

Result<Optimizer::ParameterState> Optimizer::add_slot(const std::string& name, const Tensor& p, const Update& update) {
  ParameterState slot{p, p, {}, {}};
  if (is_half(p.dtype())) {
    RILLE_TRY(slot.master, cast(p.detach(), DType::f32));
    state_.emplace_back("master." + name, slot.master);
  }
  const auto add = [&](const char* what, Tensor& t) -> Result<void> {
    RILLE_TRY(t, zeros(p.graph(), p.shape(), slot.master.dtype()));
    state_.emplace_back(what + name, t);
    return success();
  };
  const auto* muon = std::get_if<Muon>(&update);
  if (muon && p.rank() < 2) {
    return make_error(ErrorKind::invalid,
                      fmt::format("muon: parameter {} is {}: expected a matrix", name, to_string(p.shape())),
                      "give this parameter to a group with another rule, such as adamw");
  }
  const auto* sgd = std::get_if<Sgd>(&update);
  if (muon || (sgd && sgd->momentum != 0)) RILLE_CHECK(add("momentum.", slot.m));
  const bool adam = std::holds_alternative<Adam>(update);
  if (adam) {
    slot.counter = counters_++;
    RILLE_TRY(const auto mine, select(steps_, 0, slot.counter));
    state_.emplace_back("step." + name, mine);
  }
  if (adam || std::holds_alternative<Lion>(update)) RILLE_CHECK(add("exp_avg.", slot.m));
  if (adam) RILLE_CHECK(add("exp_avg_sq.", slot.v));
  return slot;
}

// Casts the gradients of half parameters to f32: divided by the loss scale, they would underflow in a half type.
Result<void> Optimizer::widen_grads() {
  for (auto& group : groups_) {
    for (auto& slot : group.slots) {
      const Tensor grad = leaf_grad(slot.parameter.impl());
      if (!grad || grad.dtype() == slot.master.dtype()) continue;
      RILLE_TRY(const auto wide, cast(grad, slot.master.dtype()));
      set_leaf_grad(slot.parameter.impl(), wide);
    }
  }
  return success();
}

Result<Tensor> Optimizer::scaled(const Tensor& loss) {
  if (!scaling_) {
    return make_error(ErrorKind::state, "opt:scaled: this optimiser has no loss scale",
                      "make it with loss_scale = true");
  }
  scaled_ = Scaled::loss;
  return mul(loss, scale_);
}

Result<void> Optimizer::unscale() {
  if (!scaling_ || scaled_ == Scaled::gradients || !step_.graph().modes().last_part()) return success();
  if (scaled_ == Scaled::no) {
    return make_error(ErrorKind::state, "the gradients belong to a loss that was not scaled",
                      "opt:scaled(loss):backward()");
  }
  NoGrad guard(step_.graph());
  RILLE_CHECK(widen_grads());
  std::vector<Tensor> out{odd_};
  for (auto& group : groups_)
    for (auto& slot : group.slots)
      if (const Tensor grad = slot.parameter.grad()) out.push_back(grad);
  RILLE_CHECK(record(step_.graph(), OpId::grad_unscale, {}, {scale_}, out, true));
  scaled_ = Scaled::gradients;
  return success();
}

Result<void> Optimizer::update(OpId op, kernels::Attrs attrs, std::vector<Tensor> in, std::vector<Tensor> out) {
  if (scaling_) {
    attrs.i[2] = 1;
    in.push_back(odd_);
  }
  return record(step_.graph(), op, attrs, in, out, true);
}

// Views of the counters at `places` (ascending), one view for each run of neighbouring indices.
Result<std::vector<Tensor>> Optimizer::counted(const std::vector<std::int64_t>& places) const {
  std::vector<Tensor> out;
  for (std::size_t first = 0, end; first < places.size(); first = end) {
    for (end = first + 1; end < places.size() && places[end] == places[end - 1] + 1;) ++end;
    RILLE_TRY(auto window, narrow(steps_, 0, places[first], std::int64_t(end - first)));
    out.push_back(std::move(window));
  }
  return out;
}

Result<void> Optimizer::count(const std::vector<Ready>& ready) {
  std::vector<std::int64_t> places{0};
  for (const auto& r : ready) places.insert(places.end(), r.counters.begin(), r.counters.end());
  RILLE_TRY(const auto windows, counted(places));
  for (const auto& window : windows) RILLE_CHECK(update(OpId::increment, {}, {}, {window}));
  return success();
}

Result<void> Optimizer::step() {
  if (!step_.graph().modes().last_part()) return success();
  RILLE_CHECK(need_gradients(parameters()));
  RILLE_CHECK(unscale());
  Graph& g = step_.graph();
  NoGrad guard(g);
  RILLE_CHECK(widen_grads());
  std::vector<Ready> all(groups_.size());
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    Ready& ready = all[i];
    for (auto& slot : groups_[i].slots) {
      const Tensor grad = slot.parameter.grad();
      if (!grad) continue;
      ready.grads.push_back(grad);
      ready.p.push_back(slot.master.detach());
      if (slot.m) ready.m.push_back(slot.m);
      if (slot.v) ready.v.push_back(slot.v);
      if (slot.counter) ready.counters.push_back(slot.counter);
    }
  }
  const bool quick = std::none_of(groups_.begin(), groups_.end(),
                                  [](const Group& one) { return std::holds_alternative<Muon>(one.update); });
  const AllOrNone together(g, quick);
  RILLE_CHECK(count(all));
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    const Ready& ready = all[i];
    auto& group = groups_[i];
    if (ready.p.empty()) continue;
    RILLE_CHECK(std::visit([&](const auto& how) { return apply(group, ready, how); }, group.update));
    for (auto& slot : group.slots) {
      if (slot.master.is(slot.parameter) || !slot.parameter.grad()) continue;
      Tensor rounded = slot.parameter.detach();
      RILLE_CHECK(copy_(rounded, slot.master));
    }
  }
  if (scaling_) {
    kernels::Attrs attrs;
    attrs.i[0] = scaling_->interval;
    attrs.f[0] = scaling_->growth;
    attrs.f[1] = scaling_->backoff;
    RILLE_CHECK(record(g, OpId::loss_scale, attrs, {odd_}, {scale_, good_}, true));
    scaled_ = Scaled::no;
  }
  clear_grads();
  return success();
}

void Optimizer::zero_grad() {
  if (step_.graph().modes().first_part()) clear_grads();
}

void Optimizer::clear_grads() {
  for (auto& group : groups_)
    for (auto& slot : group.slots) set_leaf_grad(slot.parameter.impl(), {});
}

Result<void> Optimizer::set_lr(double lr) {
  for (std::size_t i = 0; i < groups_.size(); ++i) RILLE_CHECK(set_lr(i, lr * groups_[i].proportion));
  return success();
}

Result<void> Optimizer::set_lr(std::size_t group, double lr) {
  if (group >= groups_.size())
    return make_error(ErrorKind::invalid,
                      fmt::format("optimiser: there is no group {}, only groups 0 to below {}", group, groups_.size()));
  RILLE_CHECK(check_rate(lr));
  return fill_(groups_[group].lr, lr);
}

std::vector<Tensor> Optimizer::parameters() const {
  std::vector<Tensor> all;
  for (const auto& group : groups_)
    for (const auto& slot : group.slots) all.push_back(slot.parameter);
  return all;
}

}  // namespace rille::tensor
