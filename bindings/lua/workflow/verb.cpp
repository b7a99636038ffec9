#include "bindings/lua/workflow/verb.hpp"

#include <fmt/format.h>

namespace rille::lua {

SourcePosition::operator std::string() const {
  std::string position = script_position(L);
  lua_Debug of{};
  for (int i = lua_gettop(L); position == "?" && i > 0; --i) {
    if (!lua_isfunction(L, i) || lua_iscfunction(L, i)) continue;
    lua_pushvalue(L, i);
    if (lua_getinfo(L, ">S", &of)) position = fmt::format("{}:{}", of.short_src, of.linedefined);
  }
  return position;
}

int push_list(lua_State* L, Value list) {
  push_rille_core(L);
  lua_getfield(L, -1, "list_view");
  push_value(L, list);
  lua_call(L, 1, 1);
  return 1;
}

Verb begin_verb(lua_State* L, const char* name, Verbs kind) {
  LuaHost& host = LuaHost::of(L);
  Fiber* fiber = host.current();
  if (!fiber || !host.has_run())
    raise(L, make_error(ErrorKind::state, fmt::format("rille.{} can be called only inside a run", name),
                        "run the script with `rille run FILE`"));
  if (kind == Verbs::durable && !fiber->step.empty())
    raise(L, make_error(ErrorKind::state,
                        fmt::format("rille.{} was called inside the body of step '{}'", name, fiber->step),
                        "call it before or after the step: a step is recorded as a whole"));
  if (kind == Verbs::durable && fiber->cannot_wait)
    raise(L, make_error(ErrorKind::state,
                        fmt::format("rille.{} was called in a function that the host program called with "
                                    "rille_script_call, which cannot wait",
                                    name),
                        "the host program calls such functions with rille_script_begin"));
  return Verb{host, host.run(), *fiber, fiber->id, {L}};
}

std::string check_name(lua_State* L, int index, const char* verb) {
  // for a method such as box:call, index 1 is the box
  std::string full = fmt::format("{}{}", index == 1 ? "rille." : "box:", verb);
  if (lua_type(L, index) != LUA_TSTRING)
    raise_invalid(L, fmt::format("{}: expected its name first, got {}", full, describe(L, index)),
                  fmt::format("{}(\"name\", ...)", full));
  std::string_view name = check_text(L, index, "name");
  if (name.empty() || name.size() > 200)
    raise_invalid(L, fmt::format("{}: the name must have 1 to 200 characters", full));
  return std::string(name);
}

Result<Value> read_sim(lua_State* L, int options, const std::string& verb, bool of_call) {
  if (!lua_istable(L, options)) return Value();
  lua_getfield(L, options, "sim");
  int sim = lua_gettop(L);
  Value out;
  if (!lua_isnil(L, sim)) {
    check_table(L, sim, (verb + ": sim").c_str());
    out = Value(Value::Object{});
    if (of_call) check_options(L, sim, (verb + ": sim").c_str(), {"duration", "result", "checkpoint_every"});
    else check_options(L, sim, (verb + ": sim").c_str(), {"duration", "result"});
    for (const char* name : {"duration", "checkpoint_every"})
      if (auto ms = option_duration_ms(L, sim, name)) out.set(name, static_cast<double>(*ms) / 1000);
    lua_getfield(L, sim, "result");
    if (!lua_isnil(L, -1)) {
      RILLE_TRY(Value result, to_value(L, -1, "sim.result"));
      out.set("result", std::move(result));
    }
    lua_pop(L, 1);
  }
  lua_pop(L, 1);
  return out;
}

}  // namespace rille::lua
