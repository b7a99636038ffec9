// string.find, match, gmatch, gsub and rep with LuaJIT's results and error texts. A match can be ended and can give
// way: it counts its steps and asks the host every few thousand steps (LuaHost::check). Plain searches take linear
// time.
#pragma once

#include "bindings/host/lua.hpp"

namespace rille::host {

// Both set fields of the table on top of the stack. set_gsub_functions: the parts of a gsub by a table or function, see
// prelude.cpp.
void set_pattern_functions(lua_State* L);
void set_gsub_functions(lua_State* L);

int string_gsub(lua_State* L);  // replace.cpp
int string_rep(lua_State* L);   // repeat.cpp

}  // namespace rille::host
