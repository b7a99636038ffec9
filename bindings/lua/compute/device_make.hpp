// The methods of a device that make tensors there. For the loop thread.
#pragma once

#include "bindings/lua/compute/tensor.hpp"

namespace rille::lua {

std::vector<Function> making_methods();  // for the Device class

}  // namespace rille::lua
