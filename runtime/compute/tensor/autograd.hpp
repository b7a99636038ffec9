// Gradients. While the graph's grad mode is on, each operation on a tensor that requires grad remembers its rule;
// backward() walks the rules back from a loss and adds into .grad of the leaves. It records operations; nothing runs.
// What a rule keeps is let go by backward(), so a second backward through the same loss is a state error.
// A tensor that a rule needs and that was written in place since is a state error naming the operation.
#pragma once

#include <vector>

#include "runtime/compute/tensor/ops.hpp"

namespace rille::tensor {

// d loss / d leaf is added to each leaf's .grad. `seed` is d / d loss; empty means 1, and then loss must have
// one element. invalid: loss has more elements. state: loss does not depend on anything that requires grad.
Result<void> backward(const Tensor& loss, const Tensor& seed = {});

// Scales the .grad of `parameters` in place so that their joint 2-norm is at most max_norm; returns the norm
// before, 0-d. Parameters without grad are skipped. One fused operation.
Result<Tensor> clip_grad_norm(const std::vector<Tensor>& parameters, double max_norm);
// Each number of the gradients between -limit and limit.
Result<> clip_grad_value(const std::vector<Tensor>& parameters, double limit);

}  // namespace rille::tensor
