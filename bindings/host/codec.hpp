// Converts between Lua values and Value. Tables with keys 1..n are arrays, with string keys objects, with other scalar
// keys maps. An empty table is an empty array. Null inside an array is rille.null in Lua, so that positions are kept;
// elsewhere it is nil. Refused, naming the path of the offending field ("result.model[2]"): functions, coroutines,
// cdata, objects whose class has no encoding, cycles, more than 100 levels, more than 10 million values, NaN as a key.
// Metatables are ignored: raw contents are copied. Error tables are copied as their fields.
#pragma once

#include "bindings/host/lua.hpp"
#include "runtime/core/base/result.hpp"
#include "runtime/core/base/value.hpp"

namespace rille::host {

// `what` begins the path in messages: "the result", "args".
Result<Value> to_value(lua_State* L, int index, std::string_view what = "value");
void push_value(lua_State* L, const Value& value);
void push_null(lua_State* L);  // rille.null
bool is_null(lua_State* L, int index);

}  // namespace rille::host
