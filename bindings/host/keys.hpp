// Registry keys of the host (their addresses). Private to bindings/host.
#pragma once

#include "bindings/host/lua.hpp"

namespace rille::host {

inline char key_await;      // the sentinel that await yields, as light userdata
inline char key_parents;    // coroutine -> the coroutine that resumed it; false for a fiber's coroutine. Weak keys
inline char key_shim;       // function(raw, unpack) -> shim
inline char key_finish;     // detail::finish_call
inline char key_env;        // the user code's globals
inline char key_core;       // primitives shared by Rille's Lua and the glue
inline char key_rille;      // the module table
inline char key_run_fiber;  // function(fn, ...): runs every fiber
inline char key_functions;  // FunctionRef -> function
inline char key_data;       // fiber id -> the fiber's table (scope, trace)

namespace detail {
int finish_call(lua_State* L);
}

}  // namespace rille::host
