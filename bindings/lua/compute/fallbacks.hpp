// Where libraries declined on a device, as a table; for explain() and dev:profile.
#pragma once

#include "bindings/lua/compute/tensor.hpp"

namespace rille::lua {

// { { library, operation, why, calls }, .. }; nil where nothing was declined.
void push_fallbacks(lua_State* L, device::Device& device);

}  // namespace rille::lua
