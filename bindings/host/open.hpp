// For the glue in bindings/lua: what an opener (HostOptions::open) uses besides set_functions and define_class.
#pragma once

#include "bindings/host/lua.hpp"

namespace rille::host {

// Compiles Lua of Rille's own, with the bare libraries as its globals. name: "=[rille.flow]"; such frames are hidden.
void load_ours(lua_State* L, const char* source, const char* name);
void add_words(lua_State* L, int rille);          // pops a table; its entries become words of `rille`
void push_rille_core(lua_State* L);               // the table of primitives that Rille's Lua shares
void set_fiber_body(lua_State* L);                // pops function(fn, ...): what runs a fiber
void set_global(lua_State* L, const char* name);  // pops a value: a global of the users' code

}  // namespace rille::host
