// What is changed in a trace before it is planned. Each pass keeps results bit for bit: a compiled call gives what the
// same call gives uncompiled.
#pragma once

#include <functional>

#include "runtime/tensor/notebook.hpp"

namespace rille::tensor {

using Nodes = std::vector<std::shared_ptr<Node>>;
// Whether a storage is born in the trace and does not leave it.
using IsTemporary = std::function<bool(std::uint64_t storage_id)>;

// Of operations that ask for the same of the same values the first stays. Never of random ones, nor of what is written
// in place.
Nodes share_common(const Nodes& nodes, const IsTemporary& temporary);
// An embedding's gradient that is added to another one is added row by row, in place where the other ends there: most
// rows of a large table are not touched.
Nodes accumulate_rows(const Nodes& nodes, const IsTemporary& temporary);

}  // namespace rille::tensor
