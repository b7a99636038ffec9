// Operations with a gradient rule supplied by the caller, for results that autograd cannot follow, such as those of a
// script's own kernel.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/compute/tensor/tensor.hpp"

namespace rille::tensor {

struct GradFn;

// Takes the gradients of the outputs (zeros for an output that received none) and returns one gradient per input; an
// empty handle means none. Operations in the rule are recorded like those of any gradient.
using CustomRule = std::function<Result<std::vector<Tensor>>(const std::vector<Tensor>& grads)>;

// Returns tensors with the values of `outputs`, whose gradient backward() passes on to `inputs` through `rule`, once.
// While grad mode is off, or if no input requires grad, they have no history. invalid: an output of a type that is not
// floating; in backward(): a gradient whose shape or type differs from its input's.
Result<std::vector<Tensor>> with_gradient(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                                          CustomRule rule);
// Whether with_gradient() made `fn`. The script may hold the memory of the rule's arguments and results.
bool is_custom(const GradFn& fn);

}  // namespace rille::tensor
