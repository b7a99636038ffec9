// Loads saved state: model:load_state, opt:load_state, ema:load_state.
#pragma once

#include <string>
#include <vector>

#include "bindings/lua/compute/tensor.hpp"

namespace rille::lua {

struct StatePlace {
  std::string name;
  Tensor tensor;
  // the tensor's name in states saved by older versions of Rille; empty: the name did not change
  std::string otherwise = {};
};
// Words for the error messages of one load_state method, for example "opt:load_state", "the optimizer", "", "the
// state belongs to another model or optimizer".
struct StateOwner {
  const char* verb;
  const char* whose;
  const char* what;
  const char* hint;
};

// Loads the state at `index`: tensors by name, a list of { name =, tensor = }, or the table of a file; an options
// table may follow the state. All names, shapes and dtypes are checked before any tensor is copied, so a state that
// does not fit changes nothing. Pushes { missing = names, unexpected = names }; the two lists can be non-empty only
// with strict = false.
// Error state: a name is missing or unexpected, or a shape or kind of dtype differs.
Result<int> load_state(lua_State* L, const StateOwner& owner, std::vector<StatePlace> places, int index);
void add_state_natives(lua_State* L);  // adds to the table `rille.native`, which is at the stack's top

}  // namespace rille::lua
