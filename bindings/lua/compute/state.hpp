// Taking a state that was kept: model:load_state, opt:load_state, ema:load_state.
#pragma once

#include <string>
#include <vector>

#include "bindings/lua/compute/tensor.hpp"

namespace rille::lua {

struct StatePlace {
  std::string name;
  Tensor tensor;
  std::string otherwise = {};  // taken where there is none of that name: what older states have
};
// Whose messages they are: "opt:load_state", "the optimizer", "", "the state belongs to another model or optimizer".
struct StateOwner {
  const char* verb;
  const char* whose;
  const char* what;
  const char* hint;
};

// The state at `index`: tensors by name, a list of { name =, tensor = }, or the table of a file; options behind it. All
// is compared before anything is copied, so that a state that does not fit changes nothing. Each tensor is made on the
// device of its place. Pushes { missing = names, unexpected = names }, which only strict = false lets through.
// state: a name is missing or left over, a shape or a kind of type is another.
Result<int> load_state(lua_State* L, const StateOwner& owner, std::vector<StatePlace> places, int index);
void add_state_natives(lua_State* L);  // to the table `rille.native` on top

}  // namespace rille::lua
