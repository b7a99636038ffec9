// What tensor.cpp and its like share of tensor_check.cpp: what is said to who gives something else than a tensor.
#pragma once

#include <string_view>

#include "bindings/lua/compute/tensor.hpp"

namespace rille::lua {

[[noreturn]] void not_a_tensor(lua_State* L, int index, const char* what);  // says how to make one of what there is
const char* word_of_torch(std::string_view name);  // "cuda" -> x:to("cuda:0"); null: nothing is known
int free_tensor(lua_State* L);
void add_check_natives(lua_State* L);  // to the table `rille.native` on top

}  // namespace rille::lua
