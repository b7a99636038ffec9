// C functions for clusters and autoscaling; stdlib/cluster.lua and stdlib/autoscale define the verbs.
#include "bindings/lua/workflow/verb.hpp"

namespace rille::lua {

namespace {

// keep_lease(lease, scope): the lease ends with the outer scope `scope`, not with the current one.
int keep_lease(lua_State* L) {
  Verb v = begin_verb(L, "rent");
  v.run.keep_lease(v.id, std::string(check_text(L, 1, "lease")),
                   static_cast<engine::ScopeId>(check_integer(L, 2, "scope")));
  return 0;
}

// cluster_telemetry(list of leases) -> list of readings, each { utilization =, .. } or { error = }
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

// standing(lease) -> { calls =, left_s =, over = }: see Instances::standing. Step bodies call it, so its result is
// recorded.
Result<int> standing(lua_State* L) {
  Verb v = begin_verb(L, "standing", Verbs::anywhere);
  RILLE_TRY(Value now, v.run.standing(std::string(check_text(L, 1, "lease"))));
  return push_decoded(L, std::move(now));
}

// seconds(duration, the duration's name in errors) -> number of seconds
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
