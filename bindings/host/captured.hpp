// What a function can reach from outside of itself: its upvalues, those of the helper functions among them, and the
// contents of the tables in them. Compared before and after a step's body. Scalars compare by value, functions and
// objects by identity, tables by contents (any order). Rille's own tables and functions are passed over; at most
// 100,000 table entries are looked at, what lies beyond is not compared.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bindings/host/lua.hpp"

namespace rille::host {

class Captured {
 public:
  static Captured of(lua_State* L, int function);
  // What differs from `before`: "'n'", "the table 'list'"; several are joined. "" when nothing does.
  std::string difference(const Captured& before) const;

 private:
  struct Variable {
    std::string name;
    bool table = false;
    std::uint64_t hash = 0;
  };
  std::vector<Variable> variables_;  // in a fixed order of walking
};

}  // namespace rille::host
