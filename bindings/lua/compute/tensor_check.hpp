// Errors for arguments that are not tensors; shared by the files that bind tensors.
#pragma once

#include <string_view>

#include "bindings/lua/compute/tensor.hpp"

namespace rille::lua {

// Raises an error whose hint tells how to make a tensor from the value at `index`.
[[noreturn]] void not_a_tensor(lua_State* L, int index, const char* what);
// Returns Rille's equivalent of a PyTorch name ("cuda" gives x:to("cuda:0")), or null if there is none.
const char* word_of_torch(std::string_view name);
int free_tensor(lua_State* L);
void add_check_natives(lua_State* L);  // adds to the table `rille.native`, which is at the stack's top

}  // namespace rille::lua
