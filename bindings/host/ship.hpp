// Shipping: turns a Lua function into data that another process of the same build can run, and back. Data upvalues are
// copied by value, helper functions recursively (shared and recursive upvalues stay shared), `rille`, libraries and
// modules by name; the sources of the script's modules are included. Refused, naming the variable and the line:
// objects, coroutines, cdata, and any upvalue that a shipped function assigns. The identity is a hash of the pinned
// source text of the shipped functions, never of their bytecode.
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

// Ships the function, or the name of a module that returns one, at `index`. `what` begins messages: "box:call 'train'".
Result<Shipped> ship(lua_State* L, int index, const std::string& what);
// Pushes the function in a payload. config: another build made it.
Result<> unship(lua_State* L, const Value& payload);

}  // namespace rille::host
