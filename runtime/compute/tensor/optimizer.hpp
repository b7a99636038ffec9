// Optimisers: one fused operation updates all parameters of a group and their state in place. The learning rate and the
// step count are 0-d tensors on the device, so a compiled step is never stale: write them (fill_) between calls.
// State is allocated at creation, so that the first step looks like every other. step() clears .grad afterwards.
// Named state, for checkpoints: state() lists (name, tensor); load by copy_ into the tensor of the same name.
//
// Parameters of f16 and bf16 get a master copy in f32 (state "master.NAME"). Updates go to the master; the parameter is
// the rounded master. The copy is made at creation: load weights before, or load the optimiser's state as well.
//
// Loss scale, for f16: call backward() on scaled(loss). step() divides the gradients by the scale; if a gradient is not
// finite, it changes only the scale. All of this happens on the device.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/compute/tensor/ops.hpp"

namespace rille::tensor {

// Kingma and Ba 2015, in PyTorch's order of operations. decoupled: decay as in AdamW (Loshchilov and Hutter 2019).
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
};  // Chen et al. 2023; decoupled decay
// Jordan et al. 2024: a matrix's momentum, orthogonalised by Newton-Schulz steps; decoupled decay. For matrices;
// further dimensions are flattened into one. The update is scaled by sqrt(max(1, rows / columns)), or, with match_rms,
// by 0.2 sqrt(max(rows, columns)), which suits AdamW's learning rates (Liu et al. 2025).
struct Muon {
  double momentum = 0.95;
  bool nesterov = true, match_rms = false;
  int steps = 5;
  DType precision = DType::bf16;  // of the products; f64 parameters keep theirs
};
using Update = std::variant<Adam, Sgd, Lion, Muon>;

// The optimizers of rille.optim with their default settings. These numbers are given here only.
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

Result<void> check_settings(const Update& update);  // invalid: one is out of range
const char* rule_name(const Update& update);        // "adamw"

// Parameters that share settings. Names are the model's ("blocks.1.attn.weight") and end the names of their state.
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
  // invalid: no parameters; a parameter that occurs twice, does not require grad or is not floating; f64 parameters
  // mixed with others; or a setting out of range.
  static Result<Optimizer> create(std::vector<ParameterGroup> groups, std::optional<LossScaleOptions> scale = {});

  // Updates every parameter that has a .grad, then clears the .grad of all. Before the last part of a batch in parts
  // (Graph::Modes), step() and unscale() do nothing; zero_grad() clears only in the first part. state: with a loss
  // scale, scaled() was not called since the last step.
  Result<void> step();
  void zero_grad();
  // The loss times the loss scale. state: the optimiser has no loss scale.
  Result<Tensor> scaled(const Tensor& loss);
  // Divides the gradients by the scale now, for callers that read them before step().
  Result<void> unscale();
  // Writes the rate on the device. For all groups: a group created with another rate than the first keeps its ratio to
  // it.
  Result<void> set_lr(double lr);
  Result<void> set_lr(std::size_t group, double lr);
  const Tensor& lr(std::size_t group) const { return groups_[group].lr; }
  std::size_t groups() const { return groups_.size(); }
  std::vector<Tensor> parameters() const;
  // "step", "lr.0", "exp_avg.NAME" (Adam, Lion), "exp_avg_sq.NAME" and "step.NAME" (Adam), "momentum.NAME" (Sgd with
  // momentum, Muon), "master.NAME" (half parameters), "loss_scale", "loss_scale.good". Older states have no
  // "step.NAME"; "step" replaces it.
  const std::vector<std::pair<std::string, Tensor>>& state() const { return state_; }

 private:
  struct Slot {
    Tensor parameter, master, m, v;  // master: the parameter itself unless that is a half type
    std::int64_t counter = 0;        // index in steps_; 0: the rule does not count
  };
  struct Group {
    std::vector<Slot> slots;
    Tensor lr;
    double proportion = 1, weight_decay = 0;
    Update update;
  };
  struct Ready {  // what one group updates in this step
    std::vector<Tensor> grads, p, m, v;
    std::vector<std::int64_t> counters;
  };
  Result<std::vector<Tensor>> counted(const std::vector<std::int64_t>& places) const;
  Result<void> count(const std::vector<Ready>& ready);
  Result<void> add_group(ParameterGroup given, double first_lr);
  Result<Slot> add_slot(const std::string& name, const Tensor& p, const Update& update);
  Result<void> widen_grads();
  void clear_grads();
  Result<void> apply(const Group& group, const Ready& r, const Adam& how);
  Result<void> apply(const Group& group, const Ready& r, const Sgd& how);
  Result<void> apply(const Group& group, const Ready& r, const Lion& how);
  Result<void> apply(const Group& group, const Ready& r, const Muon& how);
  Result<void> update(OpId op, kernels::Attrs attrs, std::vector<Tensor> in, std::vector<Tensor> out);

  // i64: the number of updates, then that of each parameter whose rule (Adam) needs it, which is smaller for a
  // parameter whose first gradient came late. One tensor, so that one operation increments them.
  Tensor steps_, step_;        // step_: the first element, 0-d
  std::int64_t counters_ = 1;  // elements of steps_ in use
  std::vector<Group> groups_;
  std::vector<std::pair<std::string, Tensor>> state_;
  std::optional<LossScaleOptions> scaling_;
  Tensor scale_, good_, odd_;  // odd: a gradient of this step was not finite
  enum class Scaled : std::uint8_t { no, loss, gradients } scaled_ = Scaled::no;
};

// The nearest matrix with singular values of about one (they end between 0.7 and 1.2): `steps` times
// x <- a x + (b x x' + c (x x')^2) x, in `precision`. Exposed for tests.
Result<Tensor> orthogonal(const Tensor& matrix, int steps, DType precision);

// averages[i] = d averages[i] + (1 - d) values[i], in one operation. With `steps` (0-d i64, incremented), d is
// at most (1 + steps) / (10 + steps), so that early averages adapt quickly. invalid: lists, types or shapes that
// differ.
Result<void> average_(const std::vector<Tensor>& averages, const std::vector<Tensor>& values, double decay,
                      const Tensor& steps = {});

}  // namespace rille::tensor
