// The parts of the prompt's C++ side. Each of the add_ functions adds its functions to the table on top of the stack.
#pragma once

#include "bindings/cli/prompt/session.hpp"
#include "bindings/host/lua.hpp"

namespace rille::cli {

Repl& repl_of(lua_State* L);  // the state's
void add_programs(lua_State* L);
void add_keeping(lua_State* L);

}  // namespace rille::cli
