// A snapshot of what a function can reach: its upvalues, the upvalues of its helper functions, and the contents of
// tables in them. A step compares snapshots from before and after its body. Scalars compare by value, functions and
// objects by identity, tables by contents (in any order). Rille's tables and functions are skipped. At most 100,000
// table entries are read; further entries are not compared. Most step bodies capture only a few scalars, which are
// recorded without allocation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bindings/host/lua.hpp"

namespace rille::host {

class Captured {
 public:
  static Captured of(lua_State* L, int function);
  // Names the variables that differ from the snapshot `before`: "'n'", "the table 'list'", joined by "and"; "" if
  // nothing differs. The function of `before` must still be alive.
  std::string difference(const Captured& before) const;

 private:
  struct Scalar {
    const char* name;  // the upvalue's name; points into the function
    std::uint64_t hash;
  };
  struct Variable {
    std::string name;
    bool table = false;
    std::uint64_t hash = 0;
  };
  static constexpr int scalars_max = 8;
  bool note_scalars(lua_State* L, int function);
  std::vector<Variable> listed() const;

  int count_ = 0;  // number of entries in scalars_; -1: variables_ holds the snapshot instead
  Scalar scalars_[scalars_max];
  std::vector<Variable> variables_;  // in the order in which the walk visits them
};

}  // namespace rille::host
