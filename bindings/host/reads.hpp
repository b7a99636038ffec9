// What a function reads from outside of itself: its upvalues, those of the Lua functions among them, and the globals
// that any of these name. Looked at again and again, for a compiled function's key: plain values count as themselves,
// all else by identity. What one of these functions assigns itself is left out, as is what lies in tables, and Rille's
// own functions are not entered. A look at n places costs n reads and no memory where nothing has changed.
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
    bool function = false;  // its value is one: what it reads is among the places
  };

  // True at the first look, and where a place has another value than at the look before. `seen` is the index of a table
  // of this object's own, in which holders and values are kept; its field `ids` has weak keys.
  bool look(lua_State* L, int function, int seen);
  const std::vector<Place>& places() const { return places_; }

 private:
  static constexpr int depth_max = 8;
  static constexpr std::size_t places_max = 256;
  void find(lua_State* L, int function, int seen);
  std::vector<Place> places_;
  bool found_ = false;
};

}  // namespace rille::host
