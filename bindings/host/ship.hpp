// Shipping: turns a Lua function into data that another process of the same build can run, and back. Data upvalues
// travel by value, helper functions recursively (shared and recursive upvalues stay shared), `rille`, libraries and
// modules by name; the sources of the script's modules travel along. Refused, naming the variable and the line:
// objects, coroutines, cdata, and any upvalue that a shipped function assigns.
// The identity is made of the pinned source of the functions that travel, never of their bytecode.
#pragma once

#include <string>

#include "bindings/host/lua.hpp"
#include "runtime/core/base/result.hpp"
#include "runtime/core/base/value.hpp"

namespace rille::host {

struct Shipped {
  Value payload;
  std::string identity;
};

// The function, or the name of a module that returns one, at `index`. `what` begins messages: "box:call 'train'".
Result<Shipped> ship(lua_State* L, int index, const std::string& what);
// Pushes the function that a payload holds. config: it was made by another build.
Result<> unship(lua_State* L, const Value& payload);

}  // namespace rille::host
