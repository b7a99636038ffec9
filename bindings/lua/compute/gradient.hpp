// What stdlib/custom_grad.lua is built on.
#pragma once

#include "bindings/lua/compute/tensor.hpp"

namespace rille::lua {

void add_gradient_natives(lua_State* L);  // to the table `rille.native` on top

}  // namespace rille::lua
