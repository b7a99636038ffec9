// For bindings/lua: the functions that an opener (HostOptions::open) uses besides set_functions and define_class.
#pragma once

#include "bindings/host/lua.hpp"

namespace rille::host {

// Compiles Rille's own Lua with the plain libraries as its globals. name: "=[rille.flow]"; tracebacks hide such frames.
void load_ours(lua_State* L, const char* source, const char* name);
void add_words(lua_State* L, int rille);          // pops a table and adds its entries to `rille`
void push_rille_core(lua_State* L);               // the table of primitives for Rille's Lua
void set_fiber_body(lua_State* L);                // pops function(fn, ...), which runs a fiber
void set_global(lua_State* L, const char* name);  // pops a value and sets it as a global of user code

}  // namespace rille::host
