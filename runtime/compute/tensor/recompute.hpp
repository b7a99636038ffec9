// Saves memory by more work: a value that is cheap to compute is computed again shortly before a late use instead of
// being kept. Only values whose inputs are kept anyway, so memory use never grows. Results are bit-equal.
#pragma once

#include "runtime/compute/tensor/compile.hpp"
#include "runtime/compute/tensor/passes.hpp"

namespace rille::tensor {

// `made` receives the newly created storages, which must live as long as the nodes.
Nodes recompute_late(const Nodes& nodes, const IsTemporary& temporary, Recompute level,
                     std::vector<std::shared_ptr<Storage>>& made);

}  // namespace rille::tensor
