#include "bindings/lua/compute/owner.hpp"

#include "runtime/compute/tensor/owner.hpp"

namespace rille::lua {

namespace {

// own_memory(list of tensors, "parameters of Gpt"): memory reports show this text and the script's line as their
// owner.
int own_memory(lua_State* L) {
  check_table(L, 1, "own_memory");
  const std::string what(check_text(L, 2, "own_memory"));
  tensor_state(L);
  const char* owner = nullptr;
  for (std::size_t i = 1, n = lua_objlen(L, 1); i <= n; ++i) {
    lua_rawgeti(L, 1, static_cast<int>(i));
    if (Tensor* t = test_tensor(L, -1); t && *t) {
      if (!owner) owner = tensor::owner_here(t->graph(), what);
      tensor::own(*t, owner);
    }
    lua_pop(L, 1);
  }
  return 0;
}

// own_memory_like(tensor, other): memory reports show `tensor` as a copy of `other`
int own_memory_like(lua_State* L) {
  const Tensor &t = check_tensor(L, 1, "own_memory_like"), &other = check_tensor(L, 2, "own_memory_like");
  tensor::own(t, tensor::owner_of_copy(other));
  return 0;
}

}  // namespace

void add_owner_natives(lua_State* L) {
  set_functions(L, {{"own_memory", bind<own_memory>}, {"own_memory_like", bind<own_memory_like>}});
}

}  // namespace rille::lua
