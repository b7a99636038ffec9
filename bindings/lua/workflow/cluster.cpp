// Primitives for clusters and autoscaling; the verbs are in stdlib/cluster.lua and stdlib/autoscale.
#include "bindings/lua/workflow/verb.hpp"

namespace rille::lua {

namespace {

// (lease, scope): the lease ends with that outer scope, not with the current one.
int keep_lease(lua_State* L) {
  Verb v = begin_verb(L, "rent");
  v.run.keep_lease(v.id, std::string(check_text(L, 1, "lease")),
                   static_cast<engine::ScopeId>(check_integer(L, 2, "scope")));
  return 0;
}

// (list of leases) -> list of readings, each { utilization =, .. } or { error = }
int cluster_telemetry(lua_State* L) {
  Verb v = begin_verb(L, "telemetry");
  std::vector<std::string> leases;
  for (std::size_t i = 1, n = lua_objlen(L, 1); i <= n; ++i) {
    lua_rawgeti(L, 1, static_cast<int>(i));
    leases.emplace_back(check_text(L, -1, "lease"));
    lua_pop(L, 1);
  }
  return await(L, v.run.telemetry(v.id, std::move(leases), v.source), push_decoded, Waits::engine);
}

// (lease) -> { calls =, left_s =, over = }: see Instances::standing. Called in step bodies, which record the result.
Result<int> standing(lua_State* L) {
  Verb v = begin_verb(L, "standing", Verbs::anywhere);
  RILLE_TRY(Value now, v.run.standing(std::string(check_text(L, 1, "lease"))));
  return push_decoded(L, std::move(now));
}

// (duration, its name in errors)
int seconds(lua_State* L) {
  lua_pushnumber(L, static_cast<double>(check_duration_ms(L, 1, lua_tostring(L, 2))) / 1000);
  return 1;
}

}  // namespace

void add_cluster_functions(lua_State* L) {
  set_functions(L, {{"keep_lease", bind<keep_lease>}, {"seconds", bind<seconds>}, {"standing", bind<standing>}});
  set_async(L, "telemetry", bind<cluster_telemetry>);
}

}  // namespace rille::lua
