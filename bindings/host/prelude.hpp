// Rille's own Lua inside the host. Private to bindings/host.
#pragma once

#include "bindings/host/lua.hpp"

namespace rille::host {

extern const char* const order_source;  // (core, modules behind their seals) -> pairs, next, sort
// (core, parents, await sentinel, order) -> env, rille, shim, body of a fiber
extern const char* const prelude_source;
void push_core(lua_State* L);  // the table of primitives, new

}  // namespace rille::host
