// A product of `linear` and the activation behind it as one operation (kernels/gemm.hpp, matmul_activated): one call of
// cuBLASLt, which saves a pass over memory. It is the one pass that may change bits: the activation sees the sum before
// it is rounded. So it is made only where it is asked for, and on CUDA devices, where it saves something.
#pragma once

#include "runtime/compute/tensor/passes.hpp"

namespace rille::tensor {

// relu where nobody else reads the product; gelu (by tanh), whose gradient may.
Nodes join_epilogues(const Nodes& nodes, const IsTemporary& temporary);

}  // namespace rille::tensor
