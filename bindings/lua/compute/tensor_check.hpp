// Errors for arguments that are not tensors; shared by the files that bind tensors.
#pragma once

#include <string_view>

#include "bindings/lua/compute/tensor.hpp"

namespace rille::lua {

// the hint says how to make a tensor from the value
[[noreturn]] void not_a_tensor(lua_State* L, int index, const char* what);
// Rille's equivalent of a PyTorch name: "cuda" -> x:to("cuda:0"); null: none
const char* word_of_torch(std::string_view name);
int free_tensor(lua_State* L);
void add_check_natives(lua_State* L);  // into the table `rille.native` at the stack's top

}  // namespace rille::lua
