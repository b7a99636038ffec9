// Gradients computed by Lua functions. A registry table holds the functions by number. The autograd tape may be freed
// on another thread than Lua's; then the function's number is noted, and the next call on Lua's thread removes it.
#include "bindings/lua/compute/gradient.hpp"

#include <mutex>

#include "bindings/host/errors.hpp"
#include "runtime/compute/tensor/custom_grad.hpp"

namespace rille::lua {

namespace {

char functions_key;  // key of the registry table that maps numbers to functions

struct Forgotten {
  std::mutex mutex;
  std::vector<std::int64_t> numbers;
  std::int64_t last = 0;
};

// Keeps one Lua backward function registered while a tape entry needs it.
struct Kept {
  std::shared_ptr<Forgotten> forgotten;
  std::int64_t number = 0;
  Kept(std::shared_ptr<Forgotten> f, std::int64_t n) : forgotten(std::move(f)), number(n) {}
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  ~Kept() {
    const std::lock_guard lock(forgotten->mutex);
    forgotten->numbers.push_back(number);
  }
};

struct ForgottenHandle {
  std::shared_ptr<Forgotten> list = std::make_shared<Forgotten>();
};

// Calls backward function `number` with the gradients, on the Lua stack that called backward().
Result<std::vector<Tensor>> call_rule(lua_State* L, std::int64_t number, std::size_t inputs,
                                      const std::vector<Tensor>& grads) {
  const int top = lua_gettop(L);
  if (!lua_checkstack(L, int(grads.size() + inputs) + 4))
    return make_error(ErrorKind::memory, "custom_grad: too many gradients for Lua's stack",
                      "give custom_grad fewer tensors, for example joined by rille.cat");
  get_registry(L, &functions_key);
  lua_rawgeti(L, -1, int(number));
  for (const auto& g : grads) push_tensor(L, g);
  std::vector<Tensor> result;
  if (lua_pcall(L, int(grads.size()), int(inputs), 0) != 0) {
    Error e = to_error(L, -1);
    lua_settop(L, top);
    return e;
  }
  for (int i = top + 2; i <= lua_gettop(L); ++i) {
    Tensor* t = test_tensor(L, i);
    if (!t && !lua_isnil(L, i)) {
      const std::string what = lua_typename(L, lua_type(L, i));
      lua_settop(L, top);
      return make_error(ErrorKind::invalid,
                        fmt::format("custom_grad: backward returned a {} as gradient {}", what, i - top - 1),
                        "return a tensor, or nil for an argument without a gradient");
    }
    result.push_back(t ? *t : Tensor());
  }
  lua_settop(L, top);
  return result;
}

std::vector<Tensor> check_tensors(lua_State* L, int index, const char* what) {
  std::vector<Tensor> out;
  for (int i = 1; i <= int(lua_objlen(L, index)); ++i) {
    lua_rawgeti(L, index, i);
    out.push_back(check_tensor(L, -1, what));
    lua_pop(L, 1);
  }
  return out;
}

// custom_grad(inputs, outputs, backward) -> the outputs; backward() through them calls the Lua function `backward`
Result<int> custom_grad(lua_State* L) {
  const auto inputs = check_tensors(L, 1, "custom_grad's input");
  const auto outputs = check_tensors(L, 2, "custom_grad's output");
  TensorState& state = tensor_state(L);
  get_registry(L, &functions_key);
  lua_rawgeti(L, -1, 0);
  const auto forgotten = check_object<ForgottenHandle>(L, -1, "custom_grad").list;
  lua_pop(L, 1);
  {
    const std::lock_guard lock(forgotten->mutex);
    for (const auto number : forgotten->numbers) {
      lua_pushnil(L);
      lua_rawseti(L, -2, int(number));
    }
    forgotten->numbers.clear();
  }
  const auto kept = std::make_shared<Kept>(forgotten, ++forgotten->last);
  lua_pushvalue(L, 3);
  lua_rawseti(L, -2, int(kept->number));
  const auto rule = [kept, from = &state, alive = std::weak_ptr(state.main),
                     n = inputs.size()](const std::vector<Tensor>& grads) -> Result<std::vector<Tensor>> {
    if (alive.expired())
      return make_error(ErrorKind::state, "custom_grad: the script has ended", "call backward before the script ends");
    return call_rule(from->L, kept->number, n, grads);
  };
  auto made = tensor::with_gradient(inputs, outputs, rule);
  if (!made) return at_line(L, std::move(made).error());
  for (auto& t : *made) push_tensor(L, std::move(t));
  return int(made->size());
}

}  // namespace

void add_gradient_natives(lua_State* L) {
  define_class<ForgottenHandle>(L, {.name = "ForgottenGradients"});
  lua_newtable(L);
  push_object(L, ForgottenHandle{});
  lua_rawseti(L, -2, 0);
  set_registry(L, &functions_key);
  set_functions(L, {{"custom_grad", bind<custom_grad>}});
}

}  // namespace rille::lua
