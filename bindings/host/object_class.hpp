// The codec's access to an object's class. Private to bindings/host.
#pragma once

#include "bindings/host/lua.hpp"
#include "runtime/core/base/value.hpp"

namespace rille::host {

using ObjectEncoder = Result<Value> (*)(lua_State* L, int index);
ObjectEncoder object_encoder(lua_State* L, int index);  // null: not our object, or not serializable

}  // namespace rille::host
