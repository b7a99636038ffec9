// Rille's own Lua inside the host. Private to bindings/host.
#pragma once

#include "bindings/host/lua.hpp"

namespace rille::host {

extern const char* const prelude_source;  // (core, parents, await sentinel) -> env, rille, shim, body of a fiber
void push_core(lua_State* L);             // the table of primitives, new

}  // namespace rille::host
