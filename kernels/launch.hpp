// A user's kernel as an operation: the call's payload runs it (runtime/compute/tensor/launch.cpp).
#pragma once

#include "kernels/call.hpp"

namespace rille::kernels {
void launch(const Call& c);
}
