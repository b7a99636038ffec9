// Where in a model the running code is, for messages: "fc2 (Linear 128 -> 10)". Loop thread only.
#pragma once

#include <lua.hpp>
#include <string>

namespace rille::lua {

// The innermost module of rille.nn that is being called, with its name in the one that calls it; "": none is.
std::string module_place(lua_State* L);

}  // namespace rille::lua
