// Converts between Lua values and Value. Tables with keys 1..n become arrays, with string keys objects, with other
// scalar keys maps. An empty table becomes an empty array. Null inside an array becomes rille.null in Lua, so that
// positions are kept; elsewhere it becomes nil. Refused, naming the path of the field ("result.model[2]"): functions,
// coroutines, cdata, objects whose class has no encoding, cycles, more than 100 levels, more than 10 million values,
// NaN as a key. Metatables are ignored: raw contents are copied. Of an error table the fields are copied.
#pragma once

#include "bindings/host/lua.hpp"
#include "runtime/core/base/result.hpp"
#include "runtime/core/base/value.hpp"

namespace rille::host {

// `what` begins the field's path in error messages, such as "the result" or "args". *bytes, unless null, receives the
// memory that the Value uses.
Result<Value> to_value(lua_State* L, int index, std::string_view what = "value", std::size_t* bytes = nullptr);
void push_value(lua_State* L, const Value& value);
void push_null(lua_State* L);  // pushes rille.null
bool is_null(lua_State* L, int index);

}  // namespace rille::host
