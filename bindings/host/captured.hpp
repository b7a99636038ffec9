// What a function can reach from outside of itself: its upvalues, those of the helper functions among them, and the
// contents of the tables in them. Compared before and after a step's body. Scalars compare by value, functions and
// objects by identity, tables by contents (any order). Rille's own tables and functions are passed over; at most
// 100,000 table entries are looked at, what lies beyond is not compared.
// Most bodies capture a few scalars: those are noted without a walk, and without memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bindings/host/lua.hpp"

namespace rille::host {

class Captured {
 public:
  static Captured of(lua_State* L, int function);
  // What differs from `before`: "'n'", "the table 'list'"; several are joined. "" when nothing does.
  // The function that `before` was made of must be alive.
  std::string difference(const Captured& before) const;

 private:
  struct Scalar {
    const char* name;  // the function's own
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

  int count_ = 0;  // of scalars_; -1: there are others, and variables_ has all
  Scalar scalars_[scalars_max];
  std::vector<Variable> variables_;  // in a fixed order of walking
};

}  // namespace rille::host
