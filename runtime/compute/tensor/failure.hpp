// How the runtime's operations report an error from inside a graph node: Call::error is text, from which kernel_error()
// (record.hpp) restores an Error of the same kind and code.
#pragma once

#include "kernels/call.hpp"
#include "runtime/core/base/error.hpp"

namespace rille::tensor {

void fail_with(const kernels::Call& c, const Error& why);

}  // namespace rille::tensor
