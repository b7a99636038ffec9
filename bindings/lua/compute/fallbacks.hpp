// Operations that a library declined on a device, as a Lua table; for explain() and dev:profile.
#pragma once

#include "bindings/lua/compute/tensor.hpp"

namespace rille::lua {

// Pushes { { library, operation, why, calls }, .. }, or nil if nothing was declined.
void push_fallbacks(lua_State* L, device::Device& device);

}  // namespace rille::lua
