// Reads the bytecode that LuaJIT dumps (lj_bcdump.h, format 2), for shipping and compiling functions: which upvalues a
// function or its inner functions assign, which globals it uses, and where each prototype is in the dump. Never compare
// hashes of dumps from different processes: the bytes of one function's dumps differ (measured).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bindings/host/lua.hpp"
#include "runtime/core/base/result.hpp"

namespace rille::host {

struct Prototype {
  std::string_view bytes;                  // the prototype's bytes in the dump
  std::vector<bool> assigned;              // one entry per upvalue: whether this function or an inner one assigns it
  std::vector<std::string> reads, writes;  // names of globals that this prototype uses; inner functions are not counted
  std::uint32_t first_line = 0;            // 0: the dump has no debug information
};

// The output of lua_dump for the Lua function at `index`, with debug information.
std::string dump_function(lua_State* L, int index);
// All prototypes of the dump, inner functions before outer ones; the last is the dumped function. Error `internal`:
// unknown format.
Result<std::vector<Prototype>> read_prototypes(std::string_view dump);

}  // namespace rille::host
