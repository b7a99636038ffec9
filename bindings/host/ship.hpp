// Shipping: turns a Lua function into data that another process of the same build can run, and back. Upvalues with data
// are copied by value; helper functions are shipped too (shared and recursive upvalues stay shared); `rille`, libraries
// and modules are sent by name; the sources of the script's modules are included. Refused, naming the variable and the
// line: objects, coroutines, cdata, and any upvalue that a shipped function assigns. The identity is a hash of the
// shipped functions' source text, never of their bytecode.
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

// Ships the function at `index`; a string there names a module that returns the function. `what` begins error messages,
// such as "box:call 'train'".
Result<Shipped> ship(lua_State* L, int index, const std::string& what);
// Pushes the function that the payload contains. Error `config`: another build of Rille made the payload.
Result<> unship(lua_State* L, const Value& payload);

}  // namespace rille::host
