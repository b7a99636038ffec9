// Device methods that create tensors. Loop thread only.
#pragma once

#include "bindings/lua/compute/tensor.hpp"

namespace rille::lua {

std::vector<Function> making_methods();  // methods of the Lua class Device: zeros, randn, ..

}  // namespace rille::lua
