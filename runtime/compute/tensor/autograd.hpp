// Gradients. While the graph's grad mode is on, each operation on a tensor that requires grad stores its gradient rule;
// backward() applies the rules in reverse order from a loss and adds the results to the leaves' .grad. It records
// operations and computes nothing itself. backward() releases the tensors that the rules kept, so a second backward
// through the same loss is a state error. So is a kept tensor that has since been written in place; that error names
// the operation.
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
// Clamps each element of the gradients to [-limit, limit].
Result<> clip_grad_value(const std::vector<Tensor>& parameters, double limit);

}  // namespace rille::tensor
