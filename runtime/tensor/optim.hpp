// Optimisers: one fused operation updates all parameters of a group and their state in place. The learning rate and the
// step count are 0-d tensors on the device, so a compiled step is never stale: write them (fill_) between calls.
// State is made when the optimiser is, so that the first step looks like every other. step() clears .grad afterwards.
// Named state, for checkpoints: state() lists (name, tensor); load by copy_ into the tensor of the same name.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/tensor/ops.hpp"

namespace rille::tensor {

// Parameters that share settings. Names are those of the model ("blocks.1.attn.weight") and prefix the state's names.
struct ParameterGroup {
  std::vector<std::pair<std::string, Tensor>> parameters;
  double lr = 1e-3;
  double weight_decay = 0;
};

struct AdamWOptions { double beta1 = 0.9, beta2 = 0.999, eps = 1e-8; };
struct SgdOptions { double momentum = 0; bool nesterov = false; };

class Optimizer {
 public:
  // Decoupled weight decay (Loshchilov and Hutter 2019), the update order of PyTorch.
  // invalid: no parameters, one twice, one that does not require grad, or not f32/f64, or of mixed types.
  static Result<Optimizer> adamw(std::vector<ParameterGroup> groups, AdamWOptions options = {});
  static Result<Optimizer> sgd(std::vector<ParameterGroup> groups, SgdOptions options = {});

  // Updates every parameter that has a .grad, then clears the .grad of all. Parameters without one stay as they are.
  Result<void> step();
  void zero_grad();
  Result<void> set_lr(double lr);                    // all groups; a write on the device
  Result<void> set_lr(std::size_t group, double lr);
  const Tensor& lr(std::size_t group) const { return groups_[group].lr; }
  std::size_t groups() const { return groups_.size(); }
  std::vector<Tensor> parameters() const;
  // "step", "lr.0", "exp_avg.NAME", "exp_avg_sq.NAME" (adamw) or "momentum.NAME" (sgd with momentum).
  const std::vector<std::pair<std::string, Tensor>>& state() const { return state_; }

 private:
  enum class Rule : std::uint8_t { adamw, sgd };
  struct Slot { Tensor parameter, m, v; };
  struct Group { std::vector<Slot> slots; Tensor lr; double weight_decay = 0; };
  static Result<Optimizer> make(Rule rule, std::vector<ParameterGroup> groups, AdamWOptions a, SgdOptions s);
  Rule rule_ = Rule::adamw;
  AdamWOptions adamw_;
  SgdOptions sgd_;
  Tensor step_;                                      // i64, 0-d: updates made
  std::vector<Group> groups_;
  std::vector<std::pair<std::string, Tensor>> state_;
};

}  // namespace rille::tensor
