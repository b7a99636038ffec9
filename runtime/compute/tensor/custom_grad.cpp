#include "runtime/compute/tensor/custom_grad.hpp"

#include <fmt/format.h>

#include <utility>

#include "runtime/compute/tensor/gradient.hpp"

namespace rille::tensor {

namespace {

struct CustomGrad final : GradFn {
  mutable CustomRule rule;
};  // the rule is released once it has run

void walk_back(Backward& b) {
  const auto& fn = static_cast<const CustomGrad&>(b.fn());
  std::vector<Tensor> grads;
  for (std::size_t i = 0; i < b.outputs(); ++i) {
    const auto& spec = fn.out_specs[i];
    grads.push_back(b.g(i) ? b.g(i) : b(zeros(fn.graph(), spec.shape, spec.dtype)));
  }
  if (b.error()) return;
  const auto rule = std::exchange(fn.rule, nullptr);
  const auto made = b(rule(grads), fn.edges.size());
  for (std::size_t i = 0; i < fn.edges.size() && !b.error(); ++i) {
    if (!made[i] || !b.needs(i)) continue;
    const auto& wanted = b.in_spec(i);
    if (made[i].shape() == wanted.shape && made[i].dtype() == wanted.dtype) {
      b.set(i, made[i].detach());
    } else {
      b(Result<Tensor>(make_error(
          ErrorKind::invalid,
          fmt::format("custom_grad: backward returned {}{} as the gradient of {}{}, input {}", name_of(made[i].dtype()),
                      to_string(made[i].shape()), name_of(wanted.dtype), to_string(wanted.shape), i + 1),
          "a gradient must have the shape and type of that input")));
    }
  }
}

constexpr Op custom{OpId::count, "custom_grad", nullptr, walk_back, Keep::nothing, false};

}  // namespace

bool is_custom(const GradFn& fn) { return fn.op == &custom; }

Result<std::vector<Tensor>> with_gradient(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                                          CustomRule rule) {
  bool wanted = false;
  std::vector<Tensor> result;
  for (const auto& t : outputs) {
    if (!is_floating(t.dtype())) {
      return make_error(ErrorKind::invalid,
                        fmt::format("custom_grad: forward returned {}{}: expected a floating type", name_of(t.dtype()),
                                    to_string(t.shape())),
                        "only floating tensors have gradients; store whole numbers for backward in the first argument");
    }
    result.push_back(t.detach());
  }
  for (const auto& t : inputs) wanted = wanted || t.requires_grad();
  if (outputs.empty() || !wanted || !outputs[0].graph().grad_enabled()) return result;
  Graph& g = outputs[0].graph();
  auto fn = std::make_shared<CustomGrad>();
  fn->op = &custom;
  fn->owner = g.weak_from_this();
  fn->order = g.impl().next_grad++;
  if (g.checks_numbers()) fn->where = g.where();
  for (const auto& t : inputs) {
    Edge edge;
    if (t.impl()->grad_fn) edge = {t.impl()->grad_fn, t.impl()->output, nullptr};
    else if (t.requires_grad()) edge.leaf = t.impl();
    fn->edges.push_back(std::move(edge));
    fn->in_specs.push_back({t.dtype(), t.shape()});
  }
  fn->rule = std::move(rule);
  for (std::size_t i = 0; i < result.size(); ++i) {
    fn->out_specs.push_back({result[i].dtype(), result[i].shape()});
    auto& impl = *result[i].impl();
    impl.requires_grad = true;
    impl.grad_fn = fn;
    impl.output = int(i);
  }
  return result;
}

}  // namespace rille::tensor
