// Errors in Lua: a table with metatable rille.Error and the fields of rille::Error, converted without loss both ways:
//   kind message hint retryable retry_after provider operation code http_status request_id resource cause traceback
// Empty fields are absent. tostring gives Error::summary; `..` works. A value of another kind that a script raises is
// unchanged under pcall; when it ends the run, it becomes an error of kind `invalid` and code "lua_error", with the
// value's text (and "file:line:") as the message.
#pragma once

#include "bindings/host/lua.hpp"

namespace rille::host {

void install_errors(lua_State* L);  // creates the metatable; call once per Lua state
void push_error(lua_State* L, const Error& error);
bool is_error(lua_State* L, int index);           // whether push_error or rille.error made the value
Error error_from_table(lua_State* L, int index);  // requires is_error(L, index)
// Converts any raised Lua value to an Error.
Error to_error(lua_State* L, int index);
// As to_error, but with the traceback that a scope or step recorded when it caught this value in the current fiber.
Error caught_error(lua_State* L, int index);
// The stack frames of `of` (a coroutine, or L itself) from `level` on, one per line: "  train.lua:12: in function
// 'name'". Contains only script frames, unless `full`. Never raises.
std::string traceback(lua_State* of, int level, bool full);
// "  in the call 'train'": ends a traceback from another process; the frames of the caller follow this line.
std::string call_line(std::string_view call);
bool ends_in_call(std::string_view traceback);
// The innermost position in the script, such as "train.lua:12"; "?" if no script is running.
std::string script_position(lua_State* L);

}  // namespace rille::host
