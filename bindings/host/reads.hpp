// Tracks what a function reads from outside: its upvalues, the upvalues of Lua functions among them, and the globals
// that any of these functions use. Checked before each call of a compiled function, as part of the key under which the
// compiled code is found. Numbers, strings and booleans count by value, everything else by identity. Variables that one
// of these functions assigns are left out, as are table contents; Rille's functions are not searched. A check of n
// variables costs n reads, and allocates only if a value has changed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "bindings/host/lua.hpp"

namespace rille::host {

// The form of a text in a key: short texts as they are, long ones as their digest.
std::string text_in_key(std::string_view text);

class Reads {
 public:
  struct Variable {
    std::string name;       // the variable's name, such as "scale"
    std::string value;      // the value as text: "2", "\"text\"", "nil", "table #3"
    int upvalue = 0;        // index of the upvalue; 0: the place is a global
    bool function = false;  // the value is a function; the places that it reads are listed too
  };

  // True at the first call, and if a value has changed since the last call. `seen` is the index of a table that belongs
  // to this Reads and keeps the places' holders and values; the table's field `ids` has weak keys.
  bool look(lua_State* L, int function, int seen);
  const std::vector<Variable>& places() const { return places_; }

 private:
  void find(lua_State* L, int function, int seen);
  std::vector<Variable> places_;
  bool found_ = false;
};

}  // namespace rille::host
