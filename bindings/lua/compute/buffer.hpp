// The Buffer class: memory of the host program, shared with the script without a copy (rille_buffer_wrap). Loop thread.
#pragma once

#include <memory>

#include "bindings/host/memory.hpp"
#include "bindings/lua/compute/tensor.hpp"

namespace rille::lua {

void define_buffer(lua_State* L);
void push_buffer(lua_State* L, std::shared_ptr<Memory> memory);
std::shared_ptr<Memory> test_buffer(lua_State* L, int index);  // null: not a Buffer
bool is_of_state(lua_State* L, const Tensor& t);               // whether this Lua state may use the tensor

}  // namespace rille::lua
