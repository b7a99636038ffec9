// For bindings/lua: functions that the callbacks in HostOptions::open use besides set_functions and define_class.
#pragma once

#include "bindings/host/lua.hpp"

namespace rille::host {

// Compiles Rille's Lua code, whose globals are the plain libraries. name: such as "=[rille.flow]"; tracebacks hide its
// frames.
void load_ours(lua_State* L, const char* source, const char* name);
void add_words(lua_State* L, int rille);  // pops a table and adds its entries to the `rille` table at index `rille`
void push_rille_core(lua_State* L);       // pushes the table of C++ functions that Rille's Lua code uses
void set_fiber_body(lua_State* L);        // pops the function(fn, ...) in which every fiber runs
void set_global(lua_State* L, const char* name);  // pops a value and makes it a global of user code

}  // namespace rille::host
