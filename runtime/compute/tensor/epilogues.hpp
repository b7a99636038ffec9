// Joins a product of `linear` and the activation after it into one operation (matmul_activated in kernels/gemm.hpp):
// one call of cuBLASLt, which saves a pass over memory. Only this pass may change bits, because the activation is
// applied to the sum before rounding. So it runs only on request, and only on CUDA devices, where it saves time.
#pragma once

#include "runtime/compute/tensor/passes.hpp"

namespace rille::tensor {

// Joins a relu if nothing else reads the product, and a gelu (tanh form) always, because its gradient may read the
// product.
Nodes join_epilogues(const Nodes& nodes, const IsTemporary& temporary);

}  // namespace rille::tensor
