// Less memory for more work: cheap values are computed again shortly before a late use instead of being kept until
// then. Only values whose inputs are kept anyway, so memory never grows. Results keep their bits.
#pragma once

#include "runtime/compute/tensor/compile.hpp"
#include "runtime/compute/tensor/passes.hpp"

namespace rille::tensor {

// `made` receives the new storages, which must live as long as the nodes.
Nodes recompute_late(const Nodes& nodes, const IsTemporary& temporary, Recompute level,
                     std::vector<std::shared_ptr<Storage>>& made);

}  // namespace rille::tensor
