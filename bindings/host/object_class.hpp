// Lets the codec find the encoder of an object's class. Private to bindings/host.
#pragma once

#include "bindings/host/lua.hpp"
#include "runtime/core/base/value.hpp"

namespace rille::host {

using ObjectEncoder = Result<Value> (*)(lua_State* L, int index);
// null: the value is not one of Rille's objects, or not serializable
ObjectEncoder object_encoder(lua_State* L, int index);

}  // namespace rille::host
