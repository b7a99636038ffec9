#include "runtime/compute/tensor/autograd.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

#include "runtime/compute/tensor/custom_grad.hpp"
#include "runtime/compute/tensor/gradient.hpp"
#include "runtime/compute/tensor/notebook.hpp"
#include "runtime/compute/tensor/owner.hpp"

namespace rille::tensor {

Tensor leaf_grad(const std::shared_ptr<TensorImpl>& leaf) {
  if (auto* notebook = leaf->graph->impl().notebook) notebook->grad_read(leaf);
  return leaf->grad;
}

void set_leaf_grad(const std::shared_ptr<TensorImpl>& leaf, const Tensor& grad) {
  if (auto* notebook = leaf->graph->impl().notebook) notebook->grad_written(leaf);
  if (grad) own_unowned(grad, of_gradients);
  leaf->grad = grad;
}

GradFn::~GradFn() {
  // Frees a long chain of functions in a loop: recursion would overflow the stack. ~Node does it the same way.
  static thread_local std::vector<std::shared_ptr<GradFn>>* doomed = nullptr;
  std::vector<std::shared_ptr<GradFn>> list;
  const bool first = doomed == nullptr;
  if (first) doomed = &list;
  for (auto& e : edges)
    if (e.fn) doomed->push_back(std::move(e.fn));
  if (!first) return;
  while (!list.empty()) {
    const auto last = std::move(list.back());
    list.pop_back();
  }
  doomed = nullptr;
}

namespace {

// Functions still to visit, latest first. An output's function always has a greater order than the functions of inputs.
struct Walk {
  std::map<std::uint64_t, std::pair<std::shared_ptr<GradFn>, std::vector<Tensor>>> waiting;
  std::vector<std::pair<std::shared_ptr<TensorImpl>, Tensor>> leaves;  // in the order in which backward() reached them
  std::set<std::uint64_t> seen;  // storages that the script may hold: the seed, tensors of custom rules

  Result<void> give(const std::shared_ptr<GradFn>& fn, int output, const Tensor& g) {
    auto& [kept, grads] = waiting[fn->order];
    if (!kept) {
      kept = fn;
      grads.resize(fn->out_specs.size());
    }
    return sum_into(grads[std::size_t(output)], g);
  }

  Result<void> give_leaf(const std::shared_ptr<TensorImpl>& leaf, const Tensor& g) {
    for (auto& [known, total] : leaves)
      if (known == leaf) return sum_into(total, g);
    leaves.emplace_back(leaf, g);
    return success();
  }

  static Result<void> sum_into(Tensor& total, const Tensor& g) {
    if (!total) {
      total = g;
      return success();
    }
    RILLE_TRY(total, add(total, g));
    return success();
  }
};

Result<void> check_kept(const GradFn& fn) {
  if (fn.released) {
    return make_error(
        ErrorKind::state,
        fmt::format("backward through {} a second time: the values that it needs were freed after the first time",
                    fn.op->name),
        "call backward once, on the sum of the losses");
  }
  std::size_t i = 0;
  for (const auto* list : {&fn.in, &fn.out}) {
    for (const auto& t : *list) {
      if (t && t.version() != fn.versions[i]) {
        return make_error(ErrorKind::state,
                          fmt::format("backward: a {} tensor that {} needs has been overwritten in place",
                                      to_string(t.shape()), fn.op->name),
                          "write to t:clone() instead");
      }
      ++i;
    }
  }
  return success();
}

Result<void> step_back(Walk& walk, const std::shared_ptr<GradFn>& fn, std::vector<Tensor> grads) {
  RILLE_CHECK(check_kept(*fn));
  Backward b(*fn, std::move(grads));
  // A rule expects the gradient of the first output. If there is none it counts as zero, and the rule is skipped.
  const bool missing = !b.g(0) && fn->op->kernel;
  if (missing) return success();
  const bool foreign = is_custom(*fn);
  const auto shown = [&](const std::vector<Tensor>& tensors) {
    for (const auto& t : tensors)
      if (foreign && t) walk.seen.insert(t.impl()->storage->id);
  };
  shown(b.grads());
  auto& impl = fn->graph().impl();
  if (impl.check_numbers) impl.backward_of = fmt::format("in the gradient of {}, {}", fn->op->name, fn->where);
  fn->op->grad(b);
  impl.backward_of.clear();
  if (b.error()) return std::move(*b.error());
  shown(b.result());
  for (std::size_t i = 0; i < fn->edges.size(); ++i) {
    const auto& edge = fn->edges[i];
    const Tensor& g = b.result()[i];
    if (!g) continue;
    if (edge.fn) RILLE_CHECK(walk.give(edge.fn, edge.output, g));
    else if (edge.leaf) RILLE_CHECK(walk.give_leaf(edge.leaf, g));
  }
  fn->in.clear();
  fn->out.clear();
  fn->released = true;
  return success();
}

// Adds the gradients to .grad. Copies a gradient whose memory others can reach, because .grad may be written in place.
Result<void> deliver(Walk& walk) {
  auto& taken = walk.seen;
  for (auto& [leaf, g] : walk.leaves) {
    const Tensor before = leaf_grad(leaf);
    Tensor own;
    if (before) {
      RILLE_TRY(own, add(before, g));
    } else if (!g.is_contiguous() || !taken.insert(g.impl()->storage->id).second) {
      RILLE_TRY(own, clone(g));
    } else {
      own = g.detach();
    }
    set_leaf_grad(leaf, own);
  }
  return success();
}

}  // namespace

Result<void> backward(const Tensor& loss, const Tensor& given) {
  if (!loss) return make_error(ErrorKind::invalid, "backward: an empty tensor handle");
  if (!loss.requires_grad()) {
    return make_error(ErrorKind::state,
                      fmt::format("backward: the {}{} loss depends on nothing that requires grad",
                                  name_of(loss.dtype()), to_string(loss.shape())),
                      "call w:requires_grad_() on parameters; results of rille.no_grad and of compiled functions have "
                      "no history: call backward inside");
  }
  if (!given && loss.count() != 1) {
    return make_error(ErrorKind::invalid,
                      fmt::format("backward: the loss has the shape {}: expected one element", to_string(loss.shape())),
                      "take its mean() or sum(), or give the gradient of the loss");
  }
  if (given && (!(given.shape() == loss.shape()) || given.dtype() != loss.dtype())) {
    return make_error(
        ErrorKind::invalid,
        fmt::format("backward: the gradient is {}{} and the loss {}{}: they must have one type and shape",
                    name_of(given.dtype()), to_string(given.shape()), name_of(loss.dtype()), to_string(loss.shape())));
  }
  Graph& g = loss.graph();
  NoGrad guard(g);
  Tensor seed = given ? given.detach() : Tensor{};
  const double share = 1.0 / g.modes().parts;
  if (!seed) {
    RILLE_TRY(seed, full(g, loss.shape(), share, loss.dtype()));
  } else if (share != 1) {
    RILLE_TRY(seed, mul(seed, share));
  }
  Walk walk;
  walk.seen.insert(seed.impl()->storage->id);
  if (!loss.impl()->grad_fn) RILLE_CHECK(walk.give_leaf(loss.impl(), seed));
  else RILLE_CHECK(walk.give(loss.impl()->grad_fn, loss.impl()->output, seed));
  while (!walk.waiting.empty()) {
    const auto last = std::prev(walk.waiting.end());
    auto [fn, grads] = std::move(last->second);
    walk.waiting.erase(last);
    RILLE_CHECK(step_back(walk, fn, std::move(grads)));
  }
  return deliver(walk);
}

namespace {

// The existing gradients. Half gradients are cast to f32, in .grad as well.
Result<std::vector<Tensor>> gradients_of(const char* op, const std::vector<Tensor>& parameters) {
  std::vector<Tensor> grads;
  for (const auto& p : parameters) {
    Tensor t = p.grad();
    if (t && (t.dtype() == DType::f16 || t.dtype() == DType::bf16)) {
      RILLE_TRY(t, cast(t, DType::f32));
      set_leaf_grad(p.impl(), t);
    }
    if (!t) continue;
    if (!is_floating(t.dtype()) || (!grads.empty() && t.dtype() != grads[0].dtype()))
      return make_error(ErrorKind::invalid,
                        fmt::format("{}: gradients of the types {} and {}: all must have one floating type", op,
                                    name_of((grads.empty() ? t : grads[0]).dtype()), name_of(t.dtype())),
                        "call it once for the parameters of each type");
    grads.push_back(std::move(t));
  }
  return grads;
}

Result<> need_limit(const char* op, const std::vector<Tensor>& parameters, const char* what, double limit) {
  for (const auto& p : parameters)
    if (!p) return make_error(ErrorKind::invalid, fmt::format("{}: an empty tensor handle", op));
  if (parameters.empty()) return make_error(ErrorKind::invalid, fmt::format("{}: no parameters", op));
  if (limit > 0) return success();
  return make_error(ErrorKind::invalid, fmt::format("{}: a {} of {}: expected a positive one", op, what, limit));
}

}  // namespace

Result<Tensor> clip_grad_norm(const std::vector<Tensor>& parameters, double max_norm) {
  RILLE_CHECK(need_limit("clip_grad_norm", parameters, "norm", max_norm));
  Graph& g = parameters[0].graph();
  if (!g.modes().last_part()) return zeros(g, {});
  NoGrad guard(g);
  RILLE_TRY(const std::vector<Tensor> grads, gradients_of("clip_grad_norm", parameters));
  if (grads.empty()) return zeros(g, {}, parameters[0].dtype() == DType::f64 ? DType::f64 : DType::f32);
  const Tensor norm = make_tensor(g, grads[0].dtype(), {});
  RILLE_CHECK(record(g, OpId::grad_norm, {}, grads, {norm}));
  kernels::Attrs attrs;
  attrs.f[0] = max_norm;
  RILLE_CHECK(record(g, OpId::grad_clip, attrs, {norm}, grads, true));
  return norm;
}

Result<> clip_grad_value(const std::vector<Tensor>& parameters, double limit) {
  RILLE_CHECK(need_limit("clip_grad_value", parameters, "limit", limit));
  Graph& g = parameters[0].graph();
  if (!g.modes().last_part()) return success();
  NoGrad guard(g);
  RILLE_TRY(const std::vector<Tensor> grads, gradients_of("clip_grad_value", parameters));
  for (Tensor t : grads) {
    RILLE_TRY(const Tensor clipped, clamp(t, -limit, limit));
    RILLE_CHECK(copy_(t, clipped));
  }
  return success();
}

}  // namespace rille::tensor
