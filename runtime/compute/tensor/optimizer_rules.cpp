// The rules of the optimisers: their names, the checks of their settings, and the operations recorded for one group.
#include <fmt/format.h>

#include <cmath>

#include "runtime/compute/tensor/optimizer.hpp"
#include "runtime/compute/tensor/record.hpp"

namespace rille::tensor {

namespace {

std::vector<Tensor> concatenated(std::initializer_list<std::vector<Tensor>> lists) {
  std::vector<Tensor> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

kernels::Attrs attrs_of(const std::vector<Tensor>& p, std::initializer_list<double> numbers) {
  kernels::Attrs attrs;
  attrs.i[0] = std::int64_t(p.size());
  std::copy(numbers.begin(), numbers.end(), attrs.f);
  return attrs;
}

Error out_of_range(std::string_view rule, std::string what) {
  return make_error(ErrorKind::invalid, fmt::format("{}: {}", rule, what));
}

bool fraction(double b) { return b >= 0 && b < 1; }

struct Check {
  Result<void> operator()(const Adam& o) const {
    if (fraction(o.beta1) && fraction(o.beta2) && o.eps >= 0) return success();
    return out_of_range(
        o.decoupled ? "adamw" : "adam",
        fmt::format("betas {} and {}, eps {}: betas lie in [0, 1), eps is not negative", o.beta1, o.beta2, o.eps));
  }
  Result<void> operator()(const Sgd& o) const {
    if (o.momentum >= 0 && !(o.nesterov && o.momentum == 0)) return success();
    return out_of_range("sgd",
                        fmt::format("momentum {}{}", o.momentum,
                                    o.nesterov ? " with nesterov: expected a number above 0" : ": expected 0 or more"));
  }
  Result<void> operator()(const Lion& o) const {
    if (fraction(o.beta1) && fraction(o.beta2)) return success();
    return out_of_range("lion", fmt::format("betas {} and {}: each must be in [0, 1)", o.beta1, o.beta2));
  }
  Result<void> operator()(const Muon& o) const {
    if (fraction(o.momentum) && o.steps >= 1 && o.steps <= 100 && is_floating(o.precision)) return success();
    return out_of_range("muon", fmt::format("momentum {}, steps {}, precision {}: momentum lies in [0, 1), from 1 to "
                                            "100 steps are made, in a floating type",
                                            o.momentum, o.steps, name_of(o.precision)));
  }
};

struct RuleName {
  const char* operator()(const Adam& o) const { return o.decoupled ? "adamw" : "adam"; }
  const char* operator()(const Sgd&) const { return "sgd"; }
  const char* operator()(const Lion&) const { return "lion"; }
  const char* operator()(const Muon&) const { return "muon"; }
};

}  // namespace

Result<void> check_settings(const Update& update) { return std::visit(Check{}, update); }
const char* rule_name(const Update& update) { return std::visit(RuleName{}, update); }

Result<void> Optimizer::apply(const Group& group, const Ready& r, const Adam& how) {
  auto attrs = attrs_of(r.p, {how.beta1, how.beta2, how.eps, group.weight_decay});
  attrs.i[1] = !how.decoupled;
  RILLE_TRY(const auto windows, counted(r.counters));
  Tensor steps = windows[0];
  if (windows.size() > 1) { RILLE_TRY(steps, cat(windows, 0)); }
  return update(OpId::adamw, attrs, concatenated({{steps, group.lr}, r.grads}), concatenated({r.p, r.m, r.v}));
}

Result<void> Optimizer::apply(const Group& group, const Ready& r, const Sgd& how) {
  auto attrs = attrs_of(r.p, {how.momentum, group.weight_decay});
  attrs.i[1] = how.nesterov;
  return update(OpId::sgd, attrs, concatenated({{group.lr}, r.grads}), concatenated({r.p, r.m}));
}

Result<void> Optimizer::apply(const Group& group, const Ready& r, const Lion& how) {
  const auto attrs = attrs_of(r.p, {how.beta1, how.beta2, group.weight_decay});
  return update(OpId::lion, attrs, concatenated({{group.lr}, r.grads}), concatenated({r.p, r.m}));
}

Result<void> Optimizer::apply(const Group& group, const Ready& r, const Muon& how) {
  RILLE_CHECK(update(OpId::average, attrs_of(r.p, {how.momentum}), concatenated({{Tensor{}}, r.grads}), r.m));
  std::vector<Tensor> turned;
  for (std::size_t i = 0; i < r.p.size(); ++i) {
    Tensor u = r.m[i];
    if (how.nesterov) {
      RILLE_TRY(const auto now, mul(r.grads[i], 1 - how.momentum));
      RILLE_TRY(const auto before, mul(r.m[i], how.momentum));
      RILLE_TRY(u, add(now, before));
    }
    const auto& shape = r.p[i].shape();
    Dims flat;
    flat.push(shape[0]);
    flat.push(-1);
    RILLE_TRY(u, reshape(u, flat));
    const double rows = double(u.size(0)), columns = double(u.size(1));
    RILLE_TRY(u, orthogonal(u, how.steps, u.dtype() == DType::f64 ? DType::f64 : how.precision));
    RILLE_TRY(u, cast(u, r.p[i].dtype()));
    RILLE_TRY(
        u, mul(u, how.match_rms ? 0.2 * std::sqrt(std::max(rows, columns)) : std::sqrt(std::max(1.0, rows / columns))));
    RILLE_TRY(u, contiguous(u));
    RILLE_TRY(u, reshape(u, shape));
    turned.push_back(std::move(u));
  }
  auto attrs = attrs_of(r.p, {0, group.weight_decay});
  attrs.i[3] = 1;
  return update(OpId::sgd, attrs, concatenated({{group.lr}, turned}), r.p);
}

// Coefficients and iteration from Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024.
Result<Tensor> orthogonal(const Tensor& matrix, int steps, DType precision) {
  constexpr double a = 3.4445, b = -4.7750, c = 2.0315;
  if (matrix.rank() != 2)
    return make_error(ErrorKind::invalid, fmt::format("orthogonal: {} is not a matrix", to_string(matrix.shape())));
  NoGrad guard(matrix.graph());
  const bool tall = matrix.size(0) > matrix.size(1);  // transposing keeps the product x x' small
  Tensor x = matrix;
  if (tall) { RILLE_TRY(x, transpose(x, 0, 1)); }
  RILLE_TRY(const auto squares, mul(x, x));
  RILLE_TRY(const auto total, sum(squares));
  RILLE_TRY(const auto root, sqrt(total));
  RILLE_TRY(const auto norm, maximum(root, 1e-7));
  RILLE_TRY(x, div(x, norm));
  RILLE_TRY(x, cast(x, precision));
  for (int i = 0; i < steps; ++i) {
    RILLE_TRY(const auto turned, transpose(x, 0, 1));
    RILLE_TRY(const auto square, matmul(x, turned));
    RILLE_TRY(const auto fourth, matmul(square, square));
    RILLE_TRY(const auto first, mul(square, b));
    RILLE_TRY(const auto second, mul(fourth, c));
    RILLE_TRY(const auto both, add(first, second));
    RILLE_TRY(const auto moved, matmul(both, x));
    RILLE_TRY(const auto kept, mul(x, a));
    RILLE_TRY(x, add(kept, moved));
  }
  if (tall) { RILLE_TRY(x, transpose(x, 0, 1)); }
  return x;
}

Result<void> average_(const std::vector<Tensor>& averages, const std::vector<Tensor>& values, double decay,
                      const Tensor& steps) {
  const auto refuse = [](std::string why) { return make_error(ErrorKind::invalid, "average: " + std::move(why)); };
  if (averages.empty() || averages.size() != values.size())
    return refuse(
        fmt::format("{} averages for {} values: expected one average per value", averages.size(), values.size()));
  if (!(decay >= 0 && decay < 1)) return refuse(fmt::format("a decay of {} is not in [0, 1)", decay));
  Graph& g = averages[0].graph();
  if (!g.modes().last_part()) return success();
  NoGrad guard(g);
  const DType dtype = averages[0].dtype();
  if (dtype != DType::f32 && dtype != DType::f64) return refuse(fmt::format("{}: expected f32 or f64", name_of(dtype)));
  std::vector<Tensor> in{steps};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Tensor &mine = averages[i], &value = values[i];
    if (mine.dtype() != dtype || !mine.is_contiguous() || !(mine.shape() == value.shape())) {
      return refuse(fmt::format("{}{} of {}{}", name_of(mine.dtype()), to_string(mine.shape()), name_of(value.dtype()),
                                to_string(value.shape())));
    }
    RILLE_TRY(auto x, cast(value.detach(), dtype));
    RILLE_TRY(x, contiguous(x));
    in.push_back(std::move(x));
  }
  const AllOrNone together(g, true);
  if (steps) RILLE_CHECK(record(g, OpId::increment, {}, {}, {steps}, true));
  kernels::Attrs attrs;
  attrs.f[0] = decay;
  return record(g, OpId::average, attrs, in, averages, true);
}

}  // namespace rille::tensor
