// The interface of a gradient rule. A rule reads the gradients of its operation's outputs and sets the gradients of the
// inputs, by ordinary operations. b(...) unwraps a Result; after a first error the rest of the rule has no effect.
#pragma once

#include <optional>
#include <vector>

#include "runtime/compute/tensor/ops.hpp"
#include "runtime/compute/tensor/record.hpp"

namespace rille::tensor {

class Backward {
 public:
  Backward(const GradFn& fn, std::vector<Tensor> grads) : fn_(fn), grads_(std::move(grads)), result_(fn.edges.size()) {}
  const kernels::Attrs& attrs() const { return fn_.attrs; }
  std::size_t inputs() const { return fn_.edges.size(); }
  const Tensor& in(std::size_t i) const { return fn_.in[i]; }  // input i; kept only if the operation's Keep includes it
  const Tensor& out(std::size_t i = 0) const { return fn_.out[i]; }
  const Spec& in_spec(std::size_t i) const { return fn_.in_specs[i]; }
  const Tensor& g(std::size_t i = 0) const { return grads_[i]; }  // of output i; empty: the loss ignores output i
  std::size_t outputs() const { return grads_.size(); }
  const std::vector<Tensor>& grads() const { return grads_; }
  const GradFn& fn() const { return fn_; }
  bool needs(std::size_t i) const { return fn_.edges[i].fn || fn_.edges[i].leaf; }
  void set(std::size_t i, Tensor t) { result_[i] = std::move(t); }

  Tensor operator()(Result<Tensor> r) {
    if (r) return std::move(r).value();
    if (!error_) error_ = std::move(r).error();
    return {};
  }
  std::vector<Tensor> operator()(Result<std::vector<Tensor>> r, std::size_t n) {
    if (r) return std::move(r).value();
    if (!error_) error_ = std::move(r).error();
    return std::vector<Tensor>(n);
  }
  std::optional<Error>& error() { return error_; }
  std::vector<Tensor>& result() { return result_; }

 private:
  const GradFn& fn_;
  std::vector<Tensor> grads_, result_;
  std::optional<Error> error_;
};

// While an instance lives, products are recorded with the TF32 setting of the operation whose gradient is computed.
class SameProducts {
 public:
  explicit SameProducts(const Backward& b) : graph_(b.g().graph()), before_(graph_.modes()) {
    Graph::Modes now = before_;
    now.tf32 = b.attrs().i[kernels::tf32_at] == 1;
    graph_.set_modes(now);
  }
  ~SameProducts() { graph_.set_modes(before_); }
  SameProducts(const SameProducts&) = delete;
  SameProducts& operator=(const SameProducts&) = delete;

 private:
  Graph& graph_;
  Graph::Modes before_;
};

// Sums `g` over the dimensions in which `shape` was broadcast, so that the result has shape `shape`.
Result<Tensor> sum_to(const Tensor& g, const Dims& shape);

// Declares the rule of each operation in the table; gradient::none is for operations without a rule.
namespace gradient {
#define RILLE_RULE(name, kernel, build, launch, rule, ...) void rule(Backward&);
RILLE_OPERATIONS(RILLE_RULE)
#undef RILLE_RULE
}  // namespace gradient

}  // namespace rille::tensor
