// How an operation of the runtime's own, inside a node of the graph, says what went wrong: Call::error is text, and
// kernel_error() (record.hpp) makes an Error of it again, of the same kind and code.
#pragma once

#include "kernels/call.hpp"
#include "runtime/core/base/error.hpp"

namespace rille::tensor {

void fail_with(const kernels::Call& c, const Error& why);

}  // namespace rille::tensor
