// The Lua C API and the helpers that every binding uses: pushing values, reading arguments, option tables. The check_*
// functions raise a structured `invalid` error that names the argument. A Lua error runs the destructors of the C++
// frames that it leaves (measured), so objects on the C++ stack are safe.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

extern "C" {
#include <lauxlib.h>
#include <lua.h>
#include <luajit.h>
#include <lualib.h>
}

#include "runtime/core/base/error.hpp"

namespace rille::host {

// LuaJIT treats any value as a table, so a script could choose an address. Calls that need a table go through these.
inline void need_table(lua_State* L, int index) {
  if (lua_type(L, index) != LUA_TTABLE) luaL_error(L, "expected a table, got %s", luaL_typename(L, index));
}
namespace checked {
inline int next(lua_State* L, int index) { return need_table(L, index), lua_next(L, index); }
inline void rawget(lua_State* L, int index) { need_table(L, index), lua_rawget(L, index); }
inline void rawset(lua_State* L, int index) { need_table(L, index), lua_rawset(L, index); }
inline void rawgeti(lua_State* L, int index, int n) { need_table(L, index), lua_rawgeti(L, index, n); }
inline void rawseti(lua_State* L, int index, int n) { need_table(L, index), lua_rawseti(L, index, n); }
inline int setfenv(lua_State* L, int index) { return need_table(L, -1), lua_setfenv(L, index); }
inline int setmetatable(lua_State* L, int index) {
  if (!lua_isnil(L, -1)) need_table(L, -1);
  return lua_setmetatable(L, index);
}
}  // namespace checked
#define lua_next rille::host::checked::next
#define lua_rawget rille::host::checked::rawget
#define lua_rawset rille::host::checked::rawset
#define lua_rawgeti rille::host::checked::rawgeti
#define lua_rawseti rille::host::checked::rawseti
#define lua_setfenv rille::host::checked::setfenv
#define lua_setmetatable rille::host::checked::setmetatable

inline void push(lua_State* L, std::string_view s) { lua_pushlstring(L, s.data(), s.size()); }
inline void push(lua_State* L, const char* s) { lua_pushstring(L, s); }
inline void push(lua_State* L, bool b) { lua_pushboolean(L, b); }
inline void push(lua_State* L, double n) { lua_pushnumber(L, n); }
inline void push(lua_State* L, int n) { lua_pushinteger(L, n); }
inline void push(lua_State* L, std::int64_t n) { lua_pushnumber(L, static_cast<double>(n)); }

template <class T>
void set_field(lua_State* L, const char* key, const T& value) {  // sets a field of the table on top of the stack
  push(L, value);
  lua_setfield(L, -2, key);
}

// Raises "stack overflow" when this thread's stack, which LuaJIT does not check, is nearly full.
void check_stack(lua_State* L);

// Raises a structured error in Lua (see errors.hpp). Never returns.
[[noreturn]] void raise(lua_State* L, Error error);
[[noreturn]] void raise_invalid(lua_State* L, std::string message, std::string hint = {});

// The Lua type, such as "table", or the class name of one of Rille's objects, such as "Instance".
std::string type_name(lua_State* L, int index);
// Describes a wrong value for an error message: `"abc"`, `12`, `nil`, `a table`.
std::string describe(lua_State* L, int index);
inline int absolute(lua_State* L, int index) {
  return index > 0 || index <= LUA_REGISTRYINDEX ? index : lua_gettop(L) + index + 1;
}

// `what` names the argument in the error message, such as "step name".
std::string_view check_text(lua_State* L, int index, const char* what);
double check_number(lua_State* L, int index, const char* what);
std::int64_t check_integer(lua_State* L, int index, const char* what);
bool check_bool(lua_State* L, int index, const char* what);
void check_table(lua_State* L, int index, const char* what);
void check_function(lua_State* L, int index, const char* what);
// Converts "30s", "6h", or a number of seconds to milliseconds.
std::int64_t check_duration_ms(lua_State* L, int index, const char* what);

// Raises `invalid` with a "did you mean" unless every string key of the table at `index` is in `known`. nil is
// accepted.
void check_options(lua_State* L, int index, const char* verb, std::initializer_list<const char*> known);
// Read one option. An absent option gives nullopt or the default; a value of a wrong type raises `invalid`.
std::optional<std::string> option_text(lua_State* L, int index, const char* key);
std::optional<double> option_number(lua_State* L, int index, const char* key);
std::optional<std::int64_t> option_duration_ms(lua_State* L, int index, const char* key);
bool option_bool(lua_State* L, int index, const char* key, bool otherwise);

// Sets functions as fields of the table on top of the stack.
struct Function {
  const char* name;
  lua_CFunction function;
};
void set_functions(lua_State* L, std::initializer_list<Function> functions);

// Values in the Lua registry, one per C++ address: `static char key; set_registry(L, &key)` pops and stores a value,
// get_registry pushes it.
inline void set_registry(lua_State* L, const void* key) {
  lua_pushlightuserdata(L, const_cast<void*>(key));
  lua_insert(L, -2);
  lua_rawset(L, LUA_REGISTRYINDEX);
}
inline void get_registry(lua_State* L, const void* key) {
  lua_pushlightuserdata(L, const_cast<void*>(key));
  lua_rawget(L, LUA_REGISTRYINDEX);
}

// Restores the stack's height when it goes out of scope.
class StackGuard {
 public:
  explicit StackGuard(lua_State* L) : L_(L), top_(lua_gettop(L)) {}
  ~StackGuard() { lua_settop(L_, top_); }
  StackGuard(const StackGuard&) = delete;

 private:
  lua_State* L_;
  int top_;
};

}  // namespace rille::host
