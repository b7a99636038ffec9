// Rille's own Lua inside the host. Private to bindings/host.
#pragma once

#include "bindings/host/lua.hpp"

namespace rille::host {

extern const char* const order_source;  // (core, sealed table -> our module) -> pairs, next, sort
// (core, parents, await sentinel, order) -> env, rille, shim, fiber body
extern const char* const prelude_source;
void push_core(lua_State* L);  // pushes a new table of primitives

}  // namespace rille::host
