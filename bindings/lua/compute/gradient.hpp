// C functions that stdlib/custom_grad.lua calls.
#pragma once

#include "bindings/lua/compute/tensor.hpp"

namespace rille::lua {

void add_gradient_natives(lua_State* L);  // adds to the table `rille.native`, which is at the stack's top

}  // namespace rille::lua
