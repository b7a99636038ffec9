// The Kernel object: launch and bind. k:bind returns a C closure, and calling the closure allocates nothing in Lua.
#include <cmath>
#include <cstring>

#include "bindings/lua/compute/kernel.hpp"
#include "bindings/lua/compute/stream.hpp"
#include "runtime/compute/device/executor.hpp"
#include "runtime/core/base/units.hpp"

namespace rille::lua {

namespace {

using device::LaunchShape;
using tensor::Launching;
using tensor::LaunchValue;

struct Bound {
  std::shared_ptr<const Launching> what;
  std::shared_ptr<Graph> graph;
  std::vector<LaunchValue> values;  // arguments of the current call; a member so that calls reuse the memory
};

// Reads the option `key`, grid or block: one to three numbers.
void read_extent(lua_State* L, int options, const char* verb, const char* key, unsigned (&out)[3]) {
  lua_getfield(L, options, key);
  const auto take = [&](int i) {
    const double n = check_number(L, -1, key);
    if (!(n >= 1 && n <= 2147483647.0) || n != std::floor(n))
      raise_invalid(
          L, fmt::format("{}: {} = {}: expected whole numbers from 1 on ({})", verb, key, n, script_position(L)));
    out[i] = static_cast<unsigned>(n);
  };
  if (lua_istable(L, -1)) {
    const std::size_t n = lua_objlen(L, -1);
    if (n < 1 || n > 3) raise_invalid(L, fmt::format("{}: {} has {} numbers, not 1 to 3", verb, key, n));
    for (std::size_t i = 0; i < n; ++i) {
      lua_rawgeti(L, -1, static_cast<int>(i + 1));
      take(static_cast<int>(i));
      lua_pop(L, 1);
    }
  } else if (lua_isnil(L, -1)) {
    raise_invalid(L, fmt::format("{}: {} is missing ({})", verb, key, script_position(L)),
                  "grid = blocks, block = threads of each: a number, or a list of up to three");
  } else {
    take(0);
  }
  lua_pop(L, 1);
}

LaunchShape read_shape(lua_State* L, int index, const char* verb, const device::Kernel& kernel) {
  if (!lua_istable(L, index))
    raise_invalid(
        L,
        fmt::format("{}: expected the launch's shape first, got {} ({})", verb, describe(L, index), script_position(L)),
        "k:launch({ grid = blocks, block = threads of each }, ...)");
  check_known(L, index, verb, {"grid", "block", "shared", "stream", "cooperative"}, false);
  LaunchShape s;
  read_extent(L, index, verb, "grid", s.grid);
  read_extent(L, index, verb, "block", s.block);
  lua_getfield(L, index, "shared");
  if (lua_type(L, -1) == LUA_TSTRING) {
    s.shared_bytes = static_cast<unsigned>(
        std::min<std::int64_t>(value_or_raise(L, parse_size_bytes(lua_tostring(L, -1))), 1 << 30));
  } else if (!lua_isnil(L, -1)) {
    const std::int64_t bytes = check_integer(L, -1, "shared");
    if (bytes < 0 || bytes > 1 << 30)
      raise_invalid(L, fmt::format("{}: shared = {} bytes: expected 0 to 2^30", verb, bytes));
    s.shared_bytes = static_cast<unsigned>(bytes);
  }
  lua_pop(L, 1);
  s.cooperative = option_bool(L, index, "cooperative", false);
  if (auto fits = kernel.check_shape(s); !fits) raise(L, at_line(L, std::move(fits).error()));
  return s;
}

[[noreturn]] void wrong_argument(lua_State* L, const device::Kernel& k, std::size_t i, const char* expected, int index,
                                 const char* hint = "") {
  std::string given = describe(L, index);
  if (const Tensor* t = test_tensor(L, index); t && *t)
    given = fmt::format("a tensor {}{}", name_of(t->dtype()), tensor::to_string(t->shape()));
  raise(L, at_line(L, make_error(ErrorKind::invalid,
                                 fmt::format("kernel {}: {} is {}: expected {}, got {}", k.name(), k.parameter_name(i),
                                             device::describe(k.parameters()[i]), expected, given),
                                 hint)));
}

// Writes the number at stack index `index` to `at`, in the C type of the kernel's parameter `i`.
void read_number(lua_State* L, const device::Kernel& k, std::size_t i, int index, std::byte* at) {
  const auto& p = k.parameters()[i];
  double n = 0;
  if (lua_type(L, index) == LUA_TNUMBER) n = lua_tonumber(L, index);
  else if (lua_type(L, index) == LUA_TBOOLEAN && p.element == rille_abi::boolean) n = lua_toboolean(L, index);
  else
    wrong_argument(L, k, i, p.element == rille_abi::boolean ? "a boolean or a number" : "a number", index,
                   test_tensor(L, index) ? "t:item() reads a tensor's number; or let the kernel take a pointer" : "");
  if (!device::put_number(p.element, at, n)) wrong_argument(L, k, i, "a number of that type", index);
}

void read_value(lua_State* L, const device::Kernel& k, std::size_t i, int index, LaunchValue& out) {
  const auto& p = k.parameters()[i];
  if (p.element == rille_abi::other || p.size > sizeof out.value) {
    std::size_t n = 0;
    const char* bytes = lua_type(L, index) == LUA_TSTRING ? lua_tolstring(L, index, &n) : nullptr;
    if (!bytes || n != p.size || n > sizeof out.value) {
      wrong_argument(L, k, i, fmt::format("a string of its {} bytes", p.size).c_str(), index,
                     "at most 32 bytes can be passed by value; pass more through a pointer");
    }
    std::memcpy(out.value, bytes, n);
    return;
  }
  if (p.lanes == 1) return read_number(L, k, i, index, out.value);
  if (!lua_istable(L, index) || lua_objlen(L, index) != p.lanes)
    wrong_argument(L, k, i, fmt::format("a list of {} numbers", p.lanes).c_str(), index);
  for (unsigned n = 0; n < p.lanes; ++n) {
    lua_rawgeti(L, index, static_cast<int>(n + 1));
    read_number(L, k, i, lua_gettop(L), out.value + n * (p.size / p.lanes));
    lua_pop(L, 1);
  }
}

// Launches the kernel with the arguments at stack index `first` and above.
int launch_from(lua_State* L, Graph& g, const std::shared_ptr<const Launching>& what, std::vector<LaunchValue>& values,
                int first) {
  const auto& k = *what->kernel;
  const auto& parameters = k.parameters();
  const int given = lua_gettop(L) - first + 1;
  if (given > static_cast<int>(parameters.size()) || given < 0) {
    raise(L,
          at_line(L, make_error(ErrorKind::invalid,
                                fmt::format("kernel {}: {} arguments, expected {}", k.name(), given, parameters.size()),
                                k.signature())));
  }
  values.assign(parameters.size(), {});
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const int index = first + static_cast<int>(i);
    LaunchValue& v = values[i];
    const int type = i < static_cast<std::size_t>(given) ? lua_type(L, index) : LUA_TNONE;
    if (type == LUA_TNONE) {
      raise(L, at_line(L, make_error(ErrorKind::invalid,
                                     fmt::format("kernel {}: {} arguments, expected {}: {} is missing", k.name(), given,
                                                 parameters.size(), k.parameter_name(i)),
                                     k.signature())));
    }
    if (!parameters[i].pointer) {
      read_value(L, k, i, index, v);
    } else if (type == LUA_TUSERDATA && test_tensor(L, index)) {
      v.tensor = check_tensor(L, index, k.parameter_name(i).c_str());
    } else if (type != LUA_TNIL) {
      wrong_argument(L, k, i, "a tensor or nil", index);
    }
  }
  auto done = tensor::launch(g, what, values);
  values.clear();  // releases the references to tensors
  if (!done) raise(L, at_line(L, std::move(done).error()));
  return 0;
}

// Passes a kernel's printf output to Lua's print, on the loop thread.
std::shared_ptr<const std::function<void(std::string)>> sink(lua_State* L) {
  LuaHost& host = LuaHost::of(L);
  std::weak_ptr<lua_State*> alive = tensor_state(L).main;
  return std::make_shared<const std::function<void(std::string)>>([loop = &host.loop(), alive](std::string text) {
    loop->post_from_thread([alive, text = std::move(text)] {
      // beyond output_bytes the text is dropped
      if (const auto main = alive.lock()) (void)LuaHost::of(*main).print(text);
    });
  });
}

std::shared_ptr<const Launching> launching(lua_State* L, const char* verb) {
  auto what = std::make_shared<Launching>();
  const auto& handle = check_object<KernelHandle>(L, 1, verb);
  what->kernel = handle.kernel;
  what->shape = read_shape(L, 2, verb, *what->kernel);
  what->stream = option_stream(L, 2, verb, *handle.graph);
  what->where = script_position(L);
  what->say = sink(L);
  return what;
}

int launch(lua_State* L) {  // k:launch({grid =, block =}, arguments...)
  const auto what = launching(L, "launch");
  std::vector<LaunchValue> values;
  return launch_from(L, *check_object<KernelHandle>(L, 1, "launch").graph, what, values, 3);
}

int call_bound(lua_State* L) {  // go(arguments...), where go = k:bind{..}
  auto& bound = *static_cast<Bound*>(lua_touserdata(L, lua_upvalueindex(2)));
  return launch_from(L, *bound.graph, bound.what, bound.values, 1);
}

int bind_shape(lua_State* L) {  // k:bind{grid =, block =} -> a function that launches k with these settings
  Bound& held = push_object(L, Bound{launching(L, "bind"), check_object<KernelHandle>(L, 1, "bind").graph, {}});
  lua_pushlightuserdata(L, &held);  // upvalue 1 of the closure keeps the object alive, so its address stays valid
  lua_pushcclosure(L, bind<call_bound>, 2);
  return 1;
}

Result<int> suggest_block(lua_State* L) {
  const auto& handle = check_object<KernelHandle>(L, 1, "suggest_block");
  device::Executor* const executor = handle.graph->device()->executor();
  int threads = 256;
  if (executor) { RILLE_TRY(threads, executor->suggested_block(*handle.kernel)); }
  push(L, threads);
  return 1;
}

bool kernel_field(lua_State* L, std::string_view key) {
  device::Kernel& k = *check_object<KernelHandle>(L, 1, "kernel").kernel;
  if (key == "name") push(L, k.name());
  else if (key == "signature") push(L, k.signature());
  else if (key == "cached") push(L, k.cached());
  else if (key == "checked") push(L, k.checked());
  else return false;
  return true;
}

int kernel_to_string(lua_State* L) {
  const auto& handle = check_object<KernelHandle>(L, 1, "kernel");
  const device::Kernel& k = *handle.kernel;
  push(L, fmt::format("Kernel {} {}{}", k.signature(), handle.graph->device()->name(), k.checked() ? ", checked" : ""));
  return 1;
}

}  // namespace

int push_kernel(lua_State* L, KernelHandle handle) {
  push_object(L, std::move(handle));
  return 1;
}

void define_kernel(lua_State* L) {
  define_class<KernelHandle>(
      L, {.name = "Kernel",
          .methods = {{"launch", bind<launch>}, {"bind", bind<bind_shape>}, {"suggest_block", bind<suggest_block>}},
          .async_methods = {{"cubin", bind<kernel_cubin>}, {"ptx", bind<kernel_ptx>}, {"sass", bind<kernel_sass>}},
          .metamethods = {{"__tostring", bind<kernel_to_string>}},
          .field = kernel_field,
          .fields = {"name", "signature", "cached", "checked"}});
  define_class<Bound>(L, {.name = "BoundKernel"});
}

}  // namespace rille::lua
