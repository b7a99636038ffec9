// Fiber primitives: spawn, join, cancel. The fibers' results stay in Lua, in the handle objects (flow.cpp).
#include <fmt/format.h>

#include "bindings/lua/workflow/verb.hpp"

namespace rille::lua {

namespace {

Result<int> spawn(lua_State* L) {
  Verb v = begin_verb(L, "spawn");
  std::string name = check_name(L, 1, "spawn");
  check_function(L, 2, "rille.spawn");
  if (const Error* why = v.run.cancelled(v.id)) return *why;
  RILLE_CHECK(v.host.may_spawn());
  FunctionRef function = v.host.keep_function(L, 2);
  RILLE_TRY(FiberId id, v.run.spawn(v.id, std::move(name), function, Value()));
  v.host.spawned(id);
  push(L, static_cast<std::int64_t>(id));
  return 1;
}

int join(lua_State* L) {
  Verb v = begin_verb(L, "spawn", Verbs::anywhere);
  auto child = static_cast<FiberId>(check_integer(L, 1, "fiber"));
  if (child == v.id) raise_invalid(L, "a fiber cannot wait for itself");
  return await(L, v.run.join(v.id, child), push_nothing, Waits::engine);
}

// join_any(list of fibers, whether the script acts on which fiber ended first)
int join_any(lua_State* L) {
  Verb v = begin_verb(L, "race", Verbs::anywhere);
  std::vector<FiberId> children;
  for (std::size_t i = 1, n = lua_objlen(L, 1); i <= n; ++i) {
    lua_rawgeti(L, 1, static_cast<int>(i));
    children.push_back(static_cast<FiberId>(check_integer(L, -1, "fiber")));
    lua_pop(L, 1);
  }
  return await(
      L, v.run.join_any(v.id, std::move(children), lua_toboolean(L, 2)),
      [](lua_State* l, std::size_t index) {
        push(l, static_cast<std::int64_t>(index + 1));
        return 1;
      },
      Waits::engine);
}

int cancel(lua_State* L) {
  Verb v = begin_verb(L, "spawn", Verbs::anywhere);
  auto child = static_cast<FiberId>(check_integer(L, 1, "fiber"));
  if (v.run.ended(child)) return 0;
  v.host.dismiss(child);
  v.run.cancel_fiber(child, make_error(ErrorKind::cancelled, std::string(check_text(L, 2, "reason").substr(0, 4096))));
  return 0;
}

int ended(lua_State* L) {
  Verb v = begin_verb(L, "spawn", Verbs::anywhere);
  lua_pushboolean(L, v.run.ended(static_cast<FiberId>(check_integer(L, 1, "fiber"))));
  return 1;
}

int am_cancelled(lua_State* L) {
  Verb v = begin_verb(L, "spawn", Verbs::anywhere);
  lua_pushboolean(L, v.run.cancelled(v.id) != nullptr);
  return 1;
}

}  // namespace

void add_fiber_functions(lua_State* L) {
  set_functions(
      L,
      {{"spawn", bind<spawn>}, {"cancel", bind<cancel>}, {"ended", bind<ended>}, {"am_cancelled", bind<am_cancelled>}});
  set_async(L, "join", bind<join>);
  set_async(L, "join_any", bind<join_any>);
}

}  // namespace rille::lua
