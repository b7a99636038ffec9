// Gradients. While the graph records gradients, each operation on a tensor that requires grad stores its gradient rule;
// backward() applies the rules in reverse order from a loss and adds the results to the leaves' .grad. It only records
// operations. backward() releases the tensors kept for the rules, so a second backward through the same loss is a state
// error. It is also a state error, which names the operation, if a kept tensor was written in place since.
#pragma once

#include <vector>

#include "runtime/compute/tensor/ops.hpp"

namespace rille::tensor {

// Adds d loss / d leaf to each leaf's .grad. `seed` is the gradient of loss; empty means 1, which needs a loss of one
// element. Error invalid: `seed` is empty and loss has more elements. Error state: no input of loss requires grad.
Result<void> backward(const Tensor& loss, const Tensor& seed = {});

// Scales the .grad of `parameters` in place so that their joint 2-norm is at most max_norm. Returns the norm before the
// scaling, 0-d. Skips parameters without .grad. One fused operation.
Result<Tensor> clip_grad_norm(const std::vector<Tensor>& parameters, double max_norm);
// Clamps each element of the gradients to [-limit, limit].
Result<> clip_grad_value(const std::vector<Tensor>& parameters, double limit);

}  // namespace rille::tensor
