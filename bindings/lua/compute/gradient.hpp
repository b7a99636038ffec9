// Natives for stdlib/custom_grad.lua.
#pragma once

#include "bindings/lua/compute/tensor.hpp"

namespace rille::lua {

void add_gradient_natives(lua_State* L);  // into the table `rille.native` at the stack's top

}  // namespace rille::lua
