// Lists the operations that cuDNN, cuBLAS or another library declined on a device, for explain() and dev:profile.
#pragma once

#include "bindings/lua/compute/tensor.hpp"

namespace rille::lua {

// Pushes a list of { library, operation, why, calls }, or nil if no operation was declined.
void push_fallbacks(lua_State* L, device::Device& device);

}  // namespace rille::lua
