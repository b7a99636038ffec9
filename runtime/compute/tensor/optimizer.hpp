// Optimisers: one fused operation updates all parameters of a group and their state in place. The learning rate and the
// step count are 0-d tensors on the device, so a compiled step always reads their current values: change them between
// calls with fill_. State is allocated at creation, so that the first step records the same operations as later ones.
// step() clears .grad after the update. For checkpoints, state() lists (name, tensor); to load a checkpoint, copy_ each
// saved tensor into the state tensor of the same name.
//
// Parameters of f16 and bf16 get a master copy in f32 (state "master.NAME"). Updates change the master; the parameter
// is the master rounded. The master is copied at creation: load the weights before, or load the optimiser's state as
// well.
//
// Loss scale, for f16: call backward() on scaled(loss). step() divides the gradients by the scale; if a gradient is not
// finite, step() changes only the scale. The check and the division run on the device.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/compute/tensor/ops.hpp"

namespace rille::tensor {

// Kingma and Ba 2015, in PyTorch's order of operations. decoupled: weight decay as in AdamW (Loshchilov, Hutter 2019).
struct Adam {
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  bool decoupled = true;
};
struct Sgd {
  double momentum = 0;
  bool nesterov = false;
};
struct Lion {
  double beta1 = 0.9, beta2 = 0.99;
};  // Chen et al. 2023, with decoupled weight decay
// Jordan et al. 2024: the momentum of a matrix, orthogonalised by Newton-Schulz steps; decoupled weight decay. The
// dimensions after the first are flattened into one. The update is scaled by sqrt(max(1, rows / columns)), or, with
// match_rms, by 0.2 sqrt(max(rows, columns)), which suits AdamW's learning rates (Liu et al. 2025).
struct Muon {
  double momentum = 0.95;
  bool nesterov = true, match_rms = false;
  int steps = 5;
  DType precision = DType::bf16;  // type of the matrix products; f64 parameters use f64
};
using Update = std::variant<Adam, Sgd, Lion, Muon>;

// The optimizers of rille.optim with their default settings, which are defined only here.
struct OptimizerRule {
  const char* name;
  double lr, weight_decay;
  Update update;
};
inline constexpr OptimizerRule optimizer_rules[] = {{"adamw", 1e-3, 0.01, Adam{}},
                                                    {"adam", 1e-3, 0, Adam{.decoupled = false}},
                                                    {"sgd", 1e-2, 0, Sgd{}},
                                                    {"lion", 1e-4, 0, Lion{}},
                                                    {"muon", 0.02, 0.1, Muon{}}};

Result<void> check_settings(const Update& update);  // error invalid: a setting is out of range
const char* rule_name(const Update& update);        // for example "adamw"

// Parameters that share settings. A parameter's name in the model ("blocks.1.attn.weight") also ends the names of its
// optimiser state.
struct ParameterGroup {
  std::vector<std::pair<std::string, Tensor>> parameters;
  double lr = optimizer_rules[0].lr;
  double weight_decay = 0;
  Update update = Adam{};
};

struct LossScaleOptions {
  double initial = 65536, growth = 2, backoff = 0.5;
  std::int64_t interval = 2000;
};

class Optimizer {
 public:
  // Error invalid: no parameters; a parameter that occurs twice, does not require grad or is not floating; f64
  // parameters mixed with other types; or a setting out of range.
  static Result<Optimizer> create(std::vector<ParameterGroup> groups, std::optional<LossScaleOptions> scale = {});

  // Updates every parameter that has a .grad, then clears all .grad. If a batch has several parts (Graph::Modes),
  // step() and unscale() act in the last part only, and zero_grad() in the first part only. Error state: the optimiser
  // has a loss scale and scaled() was not called since the last step.
  Result<void> step();
  void zero_grad();
  // Returns the loss times the loss scale. Error state: the optimiser has no loss scale.
  Result<Tensor> scaled(const Tensor& loss);
  // Divides the gradients by the loss scale at once, for callers that read the gradients before step().
  Result<void> unscale();
  // Writes the learning rate to the device. Without `group` it sets all groups: each keeps the ratio to the first
  // group's rate that it had at creation.
  Result<void> set_lr(double lr);
  Result<void> set_lr(std::size_t group, double lr);
  const Tensor& lr(std::size_t group) const { return groups_[group].lr; }
  std::size_t groups() const { return groups_.size(); }
  std::vector<Tensor> parameters() const;
  // "step", "lr.0", "exp_avg.NAME" (Adam, Lion), "exp_avg_sq.NAME" and "step.NAME" (Adam), "momentum.NAME" (Sgd with
  // momentum, Muon), "master.NAME" (half parameters), "loss_scale", "loss_scale.good". Older checkpoints lack
  // "step.NAME"; load "step" in its place.
  const std::vector<std::pair<std::string, Tensor>>& state() const { return state_; }

 private:
  struct ParameterState {
    Tensor parameter, master, m, v;  // master: the f32 copy of a half parameter, else the parameter itself
    std::int64_t counter = 0;        // index in steps_; 0: the rule keeps no step count per parameter
  };
  struct Group {
    std::vector<ParameterState> slots;
    Tensor lr;
    double proportion = 1, weight_decay = 0;
    Update update;
  };
  struct Ready {  // the tensors that one group updates in this step
    std::vector<Tensor> grads, p, m, v;
    std::vector<std::int64_t> counters;
  };
  Result<std::vector<Tensor>> counted(const std::vector<std::int64_t>& places) const;
  Result<void> count(const std::vector<Ready>& ready);
  Result<void> add_group(ParameterGroup given, double first_lr);
  Result<ParameterState> add_slot(const std::string& name, const Tensor& p, const Update& update);
  Result<void> widen_grads();
  void clear_grads();
  Result<void> apply(const Group& group, const Ready& r, const Adam& how);
  Result<void> apply(const Group& group, const Ready& r, const Sgd& how);
  Result<void> apply(const Group& group, const Ready& r, const Lion& how);
  Result<void> apply(const Group& group, const Ready& r, const Muon& how);
  Result<void> update(OpId op, kernels::Attrs attrs, std::vector<Tensor> in, std::vector<Tensor> out);

  // i64: the number of step() calls, then the number of updates of each parameter whose rule needs it (Adam). The
  // latter is smaller for a parameter that got its first gradient late. One tensor, so that one operation increments
  // all.
  Tensor steps_, step_;        // step_: 0-d view of element 0 of steps_
  std::int64_t counters_ = 1;  // number of elements of steps_ in use
  std::vector<Group> groups_;
  std::vector<std::pair<std::string, Tensor>> state_;
  std::optional<LossScaleOptions> scaling_;
  Tensor scale_, good_, odd_;  // odd_: set if a gradient of this step was not finite
  enum class Scaled : std::uint8_t { no, loss, gradients } scaled_ = Scaled::no;
};

// The nearest matrix whose singular values are about one (between 0.7 and 1.2 after 5 steps): applies
// x <- a x + (b x x' + c (x x')^2) x `steps` times, in `precision`. Exposed for tests.
Result<Tensor> orthogonal(const Tensor& matrix, int steps, DType precision);

// averages[i] = d averages[i] + (1 - d) values[i], in one operation. d is `decay`; given `steps` (0-d i64,
// incremented), d is at most (1 + steps) / (10 + steps), so that early averages adapt quickly. Error invalid: the lists
// differ in length, types or shapes.
Result<void> average_(const std::vector<Tensor>& averages, const std::vector<Tensor>& values, double decay,
                      const Tensor& steps = {});

}  // namespace rille::tensor
