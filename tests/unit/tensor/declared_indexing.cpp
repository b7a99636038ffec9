// Declarations: choosing and placing elements by number.
#include "operation.hpp"

namespace rille::tensor::declared {

std::vector<Operation> indexing() { return {}; }

}  // namespace rille::tensor::declared
