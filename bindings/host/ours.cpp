// Rille's own Lua code is parsed once per process: parsing is most of the time of a new Lua state. Later states load
// its bytecode, which the same LuaJIT has made in this process. Any thread.
#include <map>
#include <mutex>

#include "bindings/host/open.hpp"

namespace rille::host {

namespace {

std::mutex bytecode_mutex;
std::map<const void*, std::string>& bytecodes() {
  static auto* const all = new std::map<const void*, std::string>;  // by the address of the source, which never changes
  return *all;
}

int append(lua_State*, const void* data, std::size_t size, void* to) {
  static_cast<std::string*>(to)->append(static_cast<const char*>(data), size);
  return 0;
}

}  // namespace

void load_ours(lua_State* L, const char* source, const char* name) {
  const std::string* known = nullptr;  // entries are never removed
  {
    std::lock_guard lock(bytecode_mutex);
    if (auto it = bytecodes().find(source); it != bytecodes().end()) known = &it->second;
  }
  if (known) {
    if (luaL_loadbuffer(L, known->data(), known->size(), name) != 0) lua_error(L);
    return;
  }
  if (luaL_loadbuffer(L, source, std::char_traits<char>::length(source), name) != 0) lua_error(L);
  std::string bytecode;
  if (lua_dump(L, append, &bytecode) != 0) return;
  std::lock_guard lock(bytecode_mutex);
  bytecodes().emplace(source, std::move(bytecode));
}

}  // namespace rille::host
