// A snapshot of what a function can reach: its upvalues, the upvalues of its helper functions, and the contents of
// tables in them. Compared before and after a step's body. Scalars compare by value, functions and objects by identity,
// tables by contents (in any order). Rille's own tables and functions are skipped. At most 100,000 table entries are
// read; the rest is not compared. Most bodies capture a few scalars only: those are recorded without a walk and without
// allocation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bindings/host/lua.hpp"

namespace rille::host {

class Captured {
 public:
  static Captured of(lua_State* L, int function);
  // Names what differs from `before`: "'n'", "the table 'list'"; several are joined by "and". "" when nothing does. The
  // function of `before` must still be alive.
  std::string difference(const Captured& before) const;

 private:
  struct Scalar {
    const char* name;  // points into the function
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

  int count_ = 0;  // number of scalars_; -1: variables_ holds everything
  Scalar scalars_[scalars_max];
  std::vector<Variable> variables_;  // in the deterministic order of the walk
};

}  // namespace rille::host
