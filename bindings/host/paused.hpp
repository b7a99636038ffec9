// PausedCall: a C function that took long and has given way. Its host continues it in later turns, and then resumes the
// code that called it.
#pragma once

#include <algorithm>

#include "bindings/host/lua.hpp"

namespace rille::host {

class PausedCall {
 public:
  PausedCall() = default;
  PausedCall(const PausedCall&) = delete;
  virtual ~PausedCall() = default;       // may be called while the Lua state lives
  virtual bool go_on() = 0;              // runs for much less than a millisecond, without Lua; true: it is done
  virtual int finish(lua_State* L) = 0;  // pushes the results; returns how many, or -1: see error()
  virtual const char* error() const = 0;
};

// Keeps the arguments of a function that has given way, and the function itself with its upvalues.
class CallKept {
 public:
  // In the function itself, before it gives way. `main`: the state's first coroutine.
  CallKept(lua_State* L, lua_State* main) : L_(main) {
    const int arguments = std::min(lua_gettop(L), 3);
    lua_newtable(L);
    for (int i = 1; i <= arguments; ++i) {
      lua_pushvalue(L, i);
      lua_rawseti(L, -2, 1 + i);
    }
    lua_Debug ar;
    lua_getstack(L, 0, &ar);
    lua_getinfo(L, "f", &ar);
    lua_rawseti(L, -2, 1);
    ref_ = luaL_ref(L, LUA_REGISTRYINDEX);
  }
  ~CallKept() { luaL_unref(L_, LUA_REGISTRYINDEX, ref_); }
  CallKept(const CallKept&) = delete;
  void push_function(lua_State* L) const {
    lua_rawgeti(L, LUA_REGISTRYINDEX, ref_);
    lua_rawgeti(L, -1, 1);
    lua_remove(L, -2);
  }

 private:
  lua_State* L_;
  int ref_;
};

}  // namespace rille::host
