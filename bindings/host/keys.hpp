// Keys of the host's values in the Lua registry. The address of each variable is the key. Private to bindings/host.
#pragma once

#include "bindings/host/lua.hpp"

namespace rille::host {

inline char key_await;  // marks a yield as one of await; used as light userdata
// table with weak keys: coroutine -> the coroutine that resumed it, false for a fiber's main coroutine, or true for one
// in which the host program's calls run
inline char key_parents;
inline char key_gives_way;  // table whose [1] is true while a fiber's code is being suspended by the hook
inline char key_failed;     // table whose [1] is the error of a C function that gave way (see prelude.cpp)
inline char key_held;       // table with weak keys: coroutine of the script -> number of scopes and steps that it is in
inline char key_shim;       // function(raw, unpack) that returns the shim of set_async
inline char key_finish;     // the C function detail::finish_call
inline char key_env;        // table of the user code's globals
inline char key_core;       // table of C++ functions that Rille's Lua code uses
inline char key_rille;      // the module table `rille`
inline char key_run_fiber;  // function(fn, ...) in which every fiber runs
inline char key_functions;  // table: FunctionRef -> Lua function
inline char key_data;       // table: fiber id -> the fiber's table (scope, trace)

namespace detail {
int finish_call(lua_State* L);
}

}  // namespace rille::host
