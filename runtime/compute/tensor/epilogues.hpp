// Joins a product of `linear` and the activation that follows it into one operation (kernels/gemm.hpp,
// matmul_activated): one call of cuBLASLt, which saves a pass over memory. This is the only pass that may change bits,
// because the activation sees the sum before it is rounded. It therefore runs only on request, and only on CUDA
// devices, where it saves time.
#pragma once

#include "runtime/compute/tensor/passes.hpp"

namespace rille::tensor {

// relu if nothing else reads the product; gelu (tanh form), whose gradient may read it.
Nodes join_epilogues(const Nodes& nodes, const IsTemporary& temporary);

}  // namespace rille::tensor
