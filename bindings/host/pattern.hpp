// string.find, match, gmatch and gsub with LuaJIT's results and error texts, whose matching can be ended: they count
// their steps and ask the host every few thousand (LuaHost::check). Plain searches take linear time.
#pragma once

#include "bindings/host/lua.hpp"

namespace rille::host {

void set_pattern_functions(lua_State* L);  // into the table on top of the stack

}  // namespace rille::host
