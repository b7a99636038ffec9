// Names the owner of tensors' memory for memory reports; stdlib modules and averages use it.
#pragma once

#include "bindings/lua/compute/tensor.hpp"

namespace rille::lua {

void add_owner_natives(lua_State* L);  // into the table `rille.native` at the stack's top

}  // namespace rille::lua
