// Kernels of the prompt. Loop thread only.
#pragma once

#include <lua.hpp>

namespace rille::lua {

// From now on the kernels that this state's code makes for the CPU run in processes of their own, where that is
// possible: whatever they do, this process goes on, with its leases and variables.
void contain_kernels(lua_State* L);

}  // namespace rille::lua
