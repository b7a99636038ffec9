// Scripts in Lua, in tests/sim/scripts: executed by the Lua host as users' scripts are. Each process has a Lua state of
// its own. Their effects are reported by rille.log, outside of the journal (scripts/counted.lua).
#pragma once

#include "tests/sim/world.hpp"

namespace rille::torture {

const std::vector<Script>& lua_scripts();

}  // namespace rille::torture
