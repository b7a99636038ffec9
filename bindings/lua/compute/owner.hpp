// Whose memory tensors are, for stdlib: modules name their parameters, an average what it keeps.
#pragma once

#include "bindings/lua/compute/tensor.hpp"

namespace rille::lua {

void add_owner_natives(lua_State* L);  // to the table `rille.native` on top

}  // namespace rille::lua
