// Rille's Lua code inside the host. Private to bindings/host.
#pragma once

#include "bindings/host/lua.hpp"

namespace rille::host {

// Lua code with arguments (core, table: sealed module -> its real table); returns pairs, next, sort
extern const char* const order_source;
// Lua code with the argument core; returns { io =, os = }, which guard Lua's libraries
extern const char* const reach_source;
// Lua code with arguments (core, parents, await sentinel, order, reach); returns env, rille, shim, fiber body.
extern const char* const prelude_source;
void push_core(lua_State* L);  // pushes a new table of the C++ functions that Rille's Lua code uses

int core_sort(lua_State* L);  // sort.cpp
int core_sort_piece(lua_State* L);

}  // namespace rille::host
