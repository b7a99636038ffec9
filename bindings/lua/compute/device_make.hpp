// Device methods that create tensors. Loop thread only.
#pragma once

#include "bindings/lua/compute/tensor.hpp"

namespace rille::lua {

std::vector<Function> making_methods();  // for the Device class

}  // namespace rille::lua
