// The Tensor class: fields, operators, and `rille.native`, the C functions that the standard library calls.
#include "bindings/lua/compute/tensor.hpp"

#include <algorithm>
#include <cmath>

#include "bindings/lua/compute/buffer.hpp"
#include "bindings/lua/compute/communicator.hpp"
#include "bindings/lua/compute/gradient.hpp"
#include "bindings/lua/compute/kernel.hpp"
#include "bindings/lua/compute/module_place.hpp"
#include "bindings/lua/compute/owner.hpp"
#include "bindings/lua/compute/state.hpp"
#include "bindings/lua/compute/stream.hpp"
#include "bindings/lua/compute/tensor_check.hpp"
#include "runtime/compute/tensor/owner.hpp"

namespace rille::lua {

Error at_line(lua_State* L, Error error) {
  std::string where = script_position(L);
  if (where != "?" && error.message.find(where) == std::string::npos) error.message += " (" + where + ")";
  if (error.kind == ErrorKind::invalid && !error.message.starts_with("in "))
    if (const std::string layer = module_place(L); !layer.empty())
      error.message = fmt::format("in {}: {}", layer, error.message);
  return error;
}

int push_tensor(lua_State* L, Tensor t) {
  TensorState& state = tensor_state(L);
  state.handle_bytes += t.size_bytes() + tensor::object_bytes;
  // Lua's garbage collector counts only the small userdata, not the tensor's memory
  if (state.handle_bytes > state.collect_after_bytes) {
    state.handle_bytes = 0;
    lua_gc(L, LUA_GCCOLLECT, 0);
  }
  push_object(L, std::move(t));
  return 1;
}

Result<int> give(lua_State* L, Result<Tensor> t) {
  if (!t) return at_line(L, std::move(t).error());
  return push_tensor(L, std::move(*t));
}

Tensor optional_tensor(lua_State* L, int index, const char* what) {
  return lua_isnoneornil(L, index) ? Tensor() : check_tensor(L, index, what);
}

Tensor option_tensor(lua_State* L, int index, const char* key) {
  if (!lua_istable(L, index)) return {};
  lua_getfield(L, index, key);
  Tensor t = optional_tensor(L, -1, key);
  lua_pop(L, 1);
  return t;
}

Tensor* test_tensor(lua_State* L, int index) { return test_object<Tensor>(L, index); }

namespace {

int tensor_to_string(lua_State* L) {
  Tensor& t = check_object<Tensor>(L, 1, "tensor");
  push(L, t ? "Tensor " + t.describe() : std::string("Tensor (freed)"));
  return 1;
}

bool tensor_field(lua_State* L, std::string_view key) {
  const auto is = [&](const char* name) { return key == name; };
  if (!is("grad") && !is("requires_grad") && !is("dtype") && !is("device")) {
    if (const char* ours = word_of_torch(key))
      raise_invalid(L, fmt::format("Tensor has no field or method '{}' ({})", key, script_position(L)),
                    fmt::format("here it is {}", ours));
    return false;
  }
  Tensor& t = check_tensor(L, 1, "tensor");
  if (is("grad")) {
    if (Tensor g = t.grad()) push_tensor(L, std::move(g));
    else lua_pushnil(L);
  } else if (is("requires_grad")) {
    push(L, t.requires_grad());
  } else if (is("dtype")) {
    push(L, name_of(t.dtype()));
  } else {
    push(L, t.device()->name());
  }
  return true;
}

int no_order(lua_State* L) {
  raise_invalid(L, fmt::format("tensors cannot be compared with < or <= ({})", script_position(L)),
                "a:lt(b), a:le(b), a:gt(b) and a:ge(b) compare element by element");
}

int no_concat(lua_State* L) {
  raise_invalid(L, fmt::format("a tensor cannot be joined to text ({})", script_position(L)),
                "read its value: t:item(), or print(t)");
}

int length(lua_State* L) {
  Tensor& t = check_tensor(L, 1, "#tensor");
  if (t.rank() == 0) raise_invalid(L, "#tensor: the tensor has no dimensions");
  push(L, t.size(0));
  return 1;
}

Result<int> backward(lua_State* L) {
  Tensor& t = check_self(L, "backward", 2);
  tensor_state(L);
  Tensor seed = lua_isnoneornil(L, 2) ? Tensor() : check_tensor(L, 2, "backward's gradient");
  if (auto done = tensor::backward(t, seed); !done) return at_line(L, std::move(done).error());
  if (const auto* a = averaging(L)) {
    if (auto done = tensor::average_gradients(a->ranks, a->parameters); !done)
      return at_line(L, std::move(done).error());
  }
  return 0;
}

Result<int> require_grad(lua_State* L) {
  Tensor& t = check_self(L, "requires_grad_", 2);
  const bool on = lua_isnoneornil(L, 2) || check_bool(L, 2, "requires_grad_");
  if (auto done = t.set_requires_grad(on); !done) return at_line(L, std::move(done).error());
  tensor_state(L);
  if (on) tensor::own_unowned(t, tensor::owner_here(t.graph(), "parameters"));
  lua_settop(L, 1);
  return 1;
}

Result<int> set_grad(lua_State* L) {
  Tensor& t = check_self(L, "set_grad", 2);
  Tensor g = lua_isnoneornil(L, 2) ? Tensor() : check_tensor(L, 2, "set_grad");
  if (auto done = t.set_grad(g); !done) return at_line(L, std::move(done).error());
  return 0;
}

int tensor_detach(lua_State* L) { return push_tensor(L, check_self(L, "detach", 1).detach()); }

// set_autocast("bf16", "f16", "tf32", "f32" or nil: off) -> the previous setting
Result<int> set_autocast(lua_State* L) {
  TensorState& state = tensor_state(L);
  const Graph::Modes before = state.modes();
  Graph::Modes modes = before;
  const auto wanted = lua_isnoneornil(L, 1) ? std::string_view("f32") : check_text(L, 1, "rille.autocast");
  modes.autocast.reset();
  modes.tf32 = wanted == "tf32";
  if (wanted == "bf16") modes.autocast = DType::bf16;
  else if (wanted == "f16") modes.autocast = DType::f16;
  else if (wanted != "f32" && wanted != "tf32")
    return make_error(ErrorKind::invalid, fmt::format("rille.autocast: {}", wanted),
                      "products are done in bf16, f16, tf32 or f32");
  state.set_modes(modes);
  if (!before.tf32 && !before.autocast) return 0;
  push(L, before.tf32 ? std::string_view("tf32") : name_of(*before.autocast));
  return 1;
}

int set_grad_enabled(lua_State* L) {
  TensorState& state = tensor_state(L);
  Graph::Modes modes = state.modes();
  const bool before = std::exchange(modes.grad_enabled, check_bool(L, 1, "set_grad_enabled"));
  state.set_modes(modes);
  push(L, before);
  return 1;
}

int set_mode(lua_State* L) {
  tensor_state(L).mode = check_text(L, 1, "mode");
  return 0;
}

// Returns the folder of the running script; "." if the script has none.
int script_directory(lua_State* L) {
  const std::string& directory = LuaHost::of(L).options().script_directory;
  push(L, directory.empty() ? std::string(".") : directory);
  return 1;
}

int clock_seconds(lua_State* L) {
  push(L, static_cast<double>(LuaHost::of(L).loop().clock().monotonic_ns()) / 1e9);
  return 1;
}

// emit(event): sends an event to the run's hooks; an agent forwards checkpoint events to the machine that rented it.
Result<int> emit(lua_State* L) {
  LuaHost& host = LuaHost::of(L);
  RILLE_TRY(Value event, to_value(L, 1, "event"));
  if (host.has_run() && host.control().hooks().event) host.control().hooks().event(event);
  return 0;
}

int number_name(lua_State* L) {  // number_name(value): "tensor" for a tensor, else nil
  if (test_tensor(L, 1)) push(L, "tensor");
  else lua_pushnil(L);
  return 1;
}

// Lua source of print: it shows the values of tensors and may wait for them; tostring never waits.
const char* const print_source = R"lua(
local print, text, kind, select, unpack = ...
return function(...)
  local n = select("#", ...)
  for i = 1, n do
    if kind((select(i, ...))) then
      local args = { ... }
      for j = i, n do if kind(args[j]) then args[j] = text(args[j]) end end
      return print(unpack(args, 1, n))
    end
  end
  return print(...)
end
)lua";

void wrap_print(lua_State* L, int native) {
  push_rille_core(L);
  lua_getfield(L, -1, "store");
  int store = lua_gettop(L);
  load_ours(L, print_source, "=[rille.print]");
  for (const char* name : {"print", "text", "kind", "select", "unpack"}) {
    bool ours = std::string_view(name) == "text" || std::string_view(name) == "kind";
    lua_getfield(L, ours ? native : store, name);
  }
  lua_call(L, 5, 1);
  set_global(L, "print");
}

// used_devices() -> the names of the devices in use; the default device comes first
int used_devices(lua_State* L) {
  lua_newtable(L);
  int n = 0;
  for (const auto& g : tensor_state(L).graphs) {
    push(L, g->device()->name());
    lua_rawseti(L, -2, ++n);
  }
  return 1;
}

int define_tensor(lua_State* L) {
  ClassSpec spec{.name = "Tensor",
                 .field = tensor_field,
                 .element = tensor_element,
                 .fields = {"grad", "requires_grad", "dtype", "device"}};
  spec.methods = {{"backward", bind<backward>},
                  {"requires_grad_", bind<require_grad>},
                  {"set_grad", bind<set_grad>},
                  {"detach", bind<tensor_detach>},
                  {"free", bind<free_tensor>}};
  for (auto& list :
       {math_methods(), reduce_methods(), network_methods(), index_methods(), image_methods(), shape_methods()})
    spec.methods.insert(spec.methods.end(), list.begin(), list.end());
  for (auto& list : {read_methods(), masked_methods()})
    spec.async_methods.insert(spec.async_methods.end(), list.begin(), list.end());
  spec.metamethods = {{"__newindex", tensor_assign}, {"__tostring", bind<tensor_to_string>}, {"__lt", bind<no_order>},
                      {"__le", bind<no_order>},      {"__concat", bind<no_concat>},          {"__len", bind<length>}};
  for (const Function& f : spec.methods) {
    std::string_view name = f.name;
    const char* meta = name == "add"         ? "__add"
                       : name == "sub"       ? "__sub"
                       : name == "mul"       ? "__mul"
                       : name == "div"       ? "__div"
                       : name == "pow"       ? "__pow"
                       : name == "remainder" ? "__mod"
                       : name == "neg"       ? "__unm"
                                             : nullptr;
    if (meta) spec.metamethods.push_back({meta, f.function});
  }
  define_class<Tensor>(L, spec);
  return 0;
}

}  // namespace

int open_tensor(lua_State* L) {
  lua_settop(L, 1);
  define_class<TensorState>(L, {.name = "Tensors"});
  define_class_later<Tensor>(L, bind<define_tensor>);
  define_buffer(L);
  lua_settop(L, 1);
  define_device(L);
  define_kernel(L);
  define_stream(L);
  define_event(L);
  lua_settop(L, 1);
  define_communicator(L);
  lua_settop(L, 1);
  lua_newtable(L);
  int native = lua_gettop(L);
  set_functions(L, {{"set_grad_enabled", bind<set_grad_enabled>},
                    {"set_autocast", bind<set_autocast>},
                    {"set_mode", bind<set_mode>},
                    {"clock", bind<clock_seconds>},
                    {"emit", bind<emit>},
                    {"kind", bind<number_name>},
                    {"used_devices", bind<used_devices>}});
  add_check_natives(L);
  add_read_natives(L);
  add_profile_natives(L);
  add_gradient_natives(L);
  add_tokenizer_natives(L);
  add_optimizer_natives(L);
  add_compile_natives(L);
  add_data_natives(L);
  add_array_natives(L);
  add_data_build_natives(L);
  add_image_set_natives(L);
  add_checkpoint_natives(L);
  add_owner_natives(L);
  add_state_natives(L);
  add_rank_natives(L);
  push_rille_core(L);
  for (const char* name : {"trace", "did_you_mean", "flow"}) {
    lua_getfield(L, -1, name);
    lua_setfield(L, native, name);
  }
  lua_getfield(L, -1, "computed");
  set_functions(L, {{"script_directory", bind<script_directory>}});
  lua_pop(L, 1);
  lua_getfield(L, -1, "loaded");
  lua_pushvalue(L, native);
  lua_setfield(L, -2, "rille.native");
  wrap_print(L, native);
  lua_settop(L, 1);
  return 0;
}

}  // namespace rille::lua
