// Labels tensor memory with an owner (a module, an average) that memory reports show.
#pragma once

#include "bindings/lua/compute/tensor.hpp"

namespace rille::lua {

void add_owner_natives(lua_State* L);  // adds to the table `rille.native`, which is at the stack's top

}  // namespace rille::lua
