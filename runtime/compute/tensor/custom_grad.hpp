// Operations with a gradient rule from the caller, for results that autograd cannot follow, such as those of a script's
// kernel.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/compute/tensor/tensor.hpp"

namespace rille::tensor {

struct GradFn;

// Takes the gradients of the outputs (zeros for an output that got none) and returns one gradient per input; an empty
// handle means no gradient. The operations in the rule are recorded like those of any gradient.
using CustomRule = std::function<Result<std::vector<Tensor>>(const std::vector<Tensor>& grads)>;

// Returns tensors with the values of `outputs`. backward() passes their gradients through `rule`, once, to `inputs`. If
// gradients are not recorded, or no input requires grad, the tensors have no history. Error invalid: an output that is
// not floating; in backward(): a gradient whose shape or type differs from that of its input.
Result<std::vector<Tensor>> with_gradient(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                                          CustomRule rule);
// Whether with_gradient() made `fn`. If so, the script may hold the rule's arguments and results.
bool is_custom(const GradFn& fn);

}  // namespace rille::tensor
