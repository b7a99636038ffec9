// Optimisers: one fused operation updates all parameters of a group and their state in place. The learning rate and the
// step count are 0-d tensors on the device, so a compiled step is never stale: write them (fill_) between calls.
// State is made when the optimiser is, so that the first step looks like every other. step() clears .grad afterwards.
// Named state, for checkpoints: state() lists (name, tensor); load by copy_ into the tensor of the same name.
//
// Parameters of f16 and bf16 get a master copy in f32 (state "master.NAME"), which is what is updated; the parameter is
// the master, rounded. It is taken when the optimiser is made: load weights before, or load the optimiser's state, too.
//
// Loss scale, for f16: scaled(loss) is what backward() starts from; step() divides the gradients, and where one of them
// is not finite it changes nothing but the scale. All of that happens on the device.
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
// Jordan et al. 2024: the momentum of a matrix, made orthogonal by Newton-Schulz steps; decoupled decay. For matrices;
// further dimensions are taken as one. The update is scaled by sqrt(max(1, rows / columns)), or, with match_rms, by
// 0.2 sqrt(max(rows, columns)), which goes with AdamW's rates (Liu et al. 2025).
struct Muon {
  double momentum = 0.95;
  bool nesterov = true, match_rms = false;
  int steps = 5;
  DType precision = DType::bf16;  // of the products; f64 parameters keep theirs
};
using Update = std::variant<Adam, Sgd, Lion, Muon>;

// The optimizers of rille.optim, with what each begins with where a script says nothing else. Nowhere else are these
// numbers given.
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

// Parameters that share settings. Names are those of the model ("blocks.1.attn.weight") and prefix the state's names.
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
  // invalid: no parameters, one twice, one that does not require grad, or no floating one, f64 among others, or a
  // setting out of range.
  static Result<Optimizer> create(std::vector<ParameterGroup> groups, std::optional<LossScaleOptions> scale = {});

  // Updates every parameter that has a .grad, then clears the .grad of all. Parameters without one stay as they are.
  // Before the last part of a batch in parts (Graph::Modes) it does nothing, as unscale(); zero_grad() clears only in
  // the first. state: with a loss scale, when scaled() was not called since the last step.
  Result<void> step();
  void zero_grad();
  // The loss times the loss scale. state: made without one.
  Result<Tensor> scaled(const Tensor& loss);
  // Divides the gradients by the scale now, for who looks at them before step().
  Result<void> unscale();
  // A write on the device. Of all groups: those made with another rate than the first keep their proportion to it.
  Result<void> set_lr(double lr);
  Result<void> set_lr(std::size_t group, double lr);
  const Tensor& lr(std::size_t group) const { return groups_[group].lr; }
  std::size_t groups() const { return groups_.size(); }
  std::vector<Tensor> parameters() const;
  // "step", "lr.0", "exp_avg.NAME" (Adam, Lion), "exp_avg_sq.NAME" and "step.NAME" (Adam), "momentum.NAME" (Sgd with
  // momentum, Muon), "master.NAME" (half parameters), "loss_scale", "loss_scale.good". Older states have no
  // "step.NAME": "step" stands for them.
  const std::vector<std::pair<std::string, Tensor>>& state() const { return state_; }

 private:
  struct Slot {
    Tensor parameter, master, m, v;  // master: the parameter itself unless that is a half type
    std::int64_t counter = 0;        // its place in steps_; 0: its rule does not count
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

  // i64: first the updates made, then those of each parameter that Adam corrects by them: of one that gets its first
  // gradient late they are fewer. In one memory, so that one operation counts them.
  Tensor steps_, step_;        // step_: the first of them, 0-d
  std::int64_t counters_ = 1;  // of steps_, taken
  std::vector<Group> groups_;
  std::vector<std::pair<std::string, Tensor>> state_;
  std::optional<LossScaleOptions> scaling_;
  Tensor scale_, good_, odd_;  // odd: a gradient of this step was not finite
  enum class Scaled : std::uint8_t { no, loss, gradients } scaled_ = Scaled::no;
};

// The nearest matrix with singular values of about one (they end between 0.7 and 1.2): `steps` times
// x <- a x + (b x x' + c (x x')^2) x, in `precision`. Exposed for tests.
Result<Tensor> orthogonal(const Tensor& matrix, int steps, DType precision);

// averages[i] = d averages[i] + (1 - d) values[i], in one operation. With `steps` (0-d i64), which is counted up, d is
// at most (1 + steps) / (10 + steps), so that young averages follow. invalid: lists, types or shapes that differ.
Result<void> average_(const std::vector<Tensor>& averages, const std::vector<Tensor>& values, double decay,
                      const Tensor& steps = {});

}  // namespace rille::tensor
