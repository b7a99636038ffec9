// Less memory for some more work: what is cheap to compute is computed again shortly before it is read late, rather
// than kept until then. Only what can be made of values that are kept anyway, so memory never grows. Bits stay.
#pragma once

#include "runtime/compute/tensor/compile.hpp"
#include "runtime/compute/tensor/passes.hpp"

namespace rille::tensor {

// `made`: gets the storages that are born by it; they must live as long as the nodes.
Nodes recompute_late(const Nodes& nodes, const IsTemporary& temporary, Recompute level,
                     std::vector<std::shared_ptr<Storage>>& made);

}  // namespace rille::tensor
