// Operations whose gradient others make: for what a script computes where autograd does not see it, as in a kernel of
// its own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "runtime/compute/tensor/tensor.hpp"

namespace rille::tensor {

struct GradFn;

// Takes the gradients of the outputs, zeros where none came; gives one for each input, or an empty one: none. What it
// asks for is recorded as any gradient is.
using CustomRule = std::function<Result<std::vector<Tensor>>(const std::vector<Tensor>& grads)>;

// The values of `outputs`, from which backward() goes on to `inputs` by `rule`, once. While grad mode is off, or no
// input requires grad, the outputs without a history. invalid: an output that is no float; in backward(): a gradient
// of another shape or type than its input.
Result<std::vector<Tensor>> with_gradient(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
                                          CustomRule rule);
// Whether that made it: the script may hold the memory of what its rule got and gave.
bool is_custom(const GradFn& fn);

}  // namespace rille::tensor
