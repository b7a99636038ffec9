// Tracks what a function reads from outside: its upvalues, the upvalues of Lua functions among them, and the globals
// that any of these use. Checked before each call of a compiled function, as part of its key. Plain values count by
// value, all others by identity. Variables that one of these functions assigns are left out, as are table contents;
// Rille's own functions are not entered. A check of n variables costs n reads and allocates nothing if nothing has
// changed.
#pragma once

#include <string>
#include <vector>

#include "bindings/host/lua.hpp"

namespace rille::host {

class Reads {
 public:
  struct Place {
    std::string name;       // "scale"
    std::string value;      // "2", "\"text\"", "nil", "table #3"
    int upvalue = 0;        // 0: a global
    bool function = false;  // the value is a function, whose own reads are listed too
  };

  // True at the first call, and when a value has changed since the last call. `seen` is the index of a table owned by
  // this object, which keeps holders and values; its field `ids` has weak keys.
  bool look(lua_State* L, int function, int seen);
  const std::vector<Place>& places() const { return places_; }

 private:
  void find(lua_State* L, int function, int seen);
  std::vector<Place> places_;
  bool found_ = false;
};

}  // namespace rille::host
