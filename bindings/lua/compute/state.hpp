// Loads saved state: model:load_state, opt:load_state, ema:load_state.
#pragma once

#include <string>
#include <vector>

#include "bindings/lua/compute/tensor.hpp"

namespace rille::lua {

struct StatePlace {
  std::string name;
  Tensor tensor;
  std::string otherwise = {};  // alternative name, used by older states
};
// Words for error messages: "opt:load_state", "the optimizer", "", "the state belongs to another model or optimizer".
struct StateOwner {
  const char* verb;
  const char* whose;
  const char* what;
  const char* hint;
};

// Loads the state at `index`: tensors by name, a list of { name =, tensor = }, or the table of a file; options follow
// it. All names, shapes and dtypes are checked before anything is copied, so a state that does not fit changes nothing.
// Each tensor is created on the device of its destination. Pushes { missing = names, unexpected = names }, which are
// non-empty only with strict = false.
// state: a name is missing or unexpected, or a shape or kind of dtype differs.
Result<int> load_state(lua_State* L, const StateOwner& owner, std::vector<StatePlace> places, int index);
void add_state_natives(lua_State* L);  // into the table `rille.native` at the stack's top

}  // namespace rille::lua
