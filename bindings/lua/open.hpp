// The `rille` table: every opener of bindings/lua, in order. A new Lua object adds its opener here.
#pragma once

#include <vector>

#include "bindings/host/lua.hpp"

namespace rille::lua {

std::vector<lua_CFunction> openers();  // the openers, for HostOptions::open
int open_as_global(lua_State* L);      // additional opener for the REPL and -e: makes `rille` a global

}  // namespace rille::lua
