// Helpers for operations that make tensors from no operands.
#pragma once

#include "runtime/compute/tensor/ops.hpp"

namespace rille::tensor {

Result<Tensor> make(Graph& g, OpId op, const kernels::Attrs& attrs, const Dims& shape, DType dtype);
Result<void> need_float_type(const char* op, DType dtype);
kernels::Attrs fill_attrs(double value);

}  // namespace rille::tensor
