// Reads LuaJIT's dumped bytecode (lj_bcdump.h, format 2) as far as shipping and compiled functions need: which upvalues
// a function assigns, itself or in inner functions, which globals it uses, and the position of each prototype in the
// dump. Dumps are never hashed across processes: their bytes differ (measured).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bindings/host/lua.hpp"
#include "runtime/core/base/result.hpp"

namespace rille::host {

struct Prototype {
  std::string_view bytes;                  // in the dump
  std::vector<bool> assigned;              // by upvalue
  std::vector<std::string> reads, writes;  // globals, of this prototype alone
  std::uint32_t first_line = 0;            // 0: without debug information
};

// The output of lua_dump for the Lua function at `index`, with debug information.
std::string dump_function(lua_State* L, int index);
// All prototypes, inner ones before outer ones: the last is the function itself. internal: unknown format.
Result<std::vector<Prototype>> read_prototypes(std::string_view dump);

}  // namespace rille::host
