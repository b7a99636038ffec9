// Errors in Lua: a table with metatable rille.Error and the fields of rille::Error, converted without loss both ways.
//   kind message hint retryable retry_after provider operation code http_status request_id resource cause traceback
// Empty fields are absent. tostring gives Error::summary; `..` works. A plain value raised by a script stays plain
// under pcall; at the edge of a run it becomes kind `invalid`, code "lua_error", with its text (including its
// "file:line:") as the message.
#pragma once

#include "bindings/host/lua.hpp"

namespace rille::host {

void install_errors(lua_State* L);  // the metatable; once per state
void push_error(lua_State* L, const Error& error);
bool is_error(lua_State* L, int index);           // made by push_error or rille.error
Error error_from_table(lua_State* L, int index);  // requires is_error
// Converts any raised value.
Error to_error(lua_State* L, int index);
// As to_error, with the traceback that a scope or step recorded when it caught this value in the current fiber.
Error caught_error(lua_State* L, int index);
// The frames of `of` (a coroutine, or L itself) from `level` on; only script frames unless `full`.
// Lines are "  train.lua:12: in function 'name'". Never raises.
std::string traceback(lua_State* of, int level, bool full);
// "  in the call 'train'": the last line of a traceback from another process; the caller's frames follow it.
std::string call_line(std::string_view call);
bool ends_in_call(std::string_view traceback);
// The innermost script position, "train.lua:12", or "?" when no script is running.
std::string script_position(lua_State* L);

}  // namespace rille::host
