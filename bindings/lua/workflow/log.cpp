// rille.log and rille.progress pass an event to the run's hooks, rille.metric writes a line; none suspends the fiber.
#include <fmt/format.h>

#include <cmath>

#include "bindings/lua/workflow/verb.hpp"

namespace rille::lua {

namespace {

// rille.log("message", { field = value })
Result<int> log(lua_State* L) {
  Verb v = begin_verb(L, "log", Verbs::anywhere);
  Value event;
  event.set("event", "log").set("message", check_text(L, 1, "rille.log")).set("source", std::string(v.source));
  if (!lua_isnoneornil(L, 2)) {
    check_table(L, 2, "rille.log's fields");
    RILLE_TRY(Value fields, to_value(L, 2, "fields"));
    event.set("fields", std::move(fields));
  }
  if (v.run.hooks().event) v.run.hooks().event(event);
  return 0;
}

Result<int> progress(lua_State* L) {
  Verb v = begin_verb(L, "progress", Verbs::anywhere);
  check_table(L, 1, "rille.progress");
  check_options(
      L, 1, "rille.progress",
      {"what", "done", "total", "unit", "loss", "rate", "rate_unit", "seconds_left", "message", "metrics", "measured"});
  RILLE_TRY(Value value, to_value(L, 1, "progress"));
  if (v.run.hooks().progress) v.run.hooks().progress(value);
  return 0;
}

// rille.metric("loss", 2.31, { step = 120 })
Result<int> metric(lua_State* L) {
  Verb v = begin_verb(L, "metric", Verbs::anywhere);
  agent::Metric m;
  m.name = check_text(L, 1, "rille.metric's name");
  if (!agent::is_metric_name(m.name))
    return make_error(ErrorKind::invalid,
                      fmt::format("rille.metric: the name {} is not valid", Value(m.name.substr(0, 200)).to_json()),
                      fmt::format("1 to {} bytes of UTF-8 without control characters", agent::metric_name_bytes_max));
  if (lua_type(L, 2) != LUA_TNUMBER)
    return make_error(ErrorKind::invalid,
                      fmt::format("rille.metric: the value of '{}' is {} instead of a number", m.name, describe(L, 2)),
                      "a tensor's value is read by tensor:item()");
  m.value = lua_tonumber(L, 2);
  if (lua_type(L, 3) == LUA_TNUMBER)
    return make_error(
        ErrorKind::invalid, fmt::format("rille.metric: the step of '{}' is a number by itself", m.name),
        fmt::format("it is an option: rille.metric(\"{}\", value, {{ step = {} }})", m.name, lua_tonumber(L, 3)));
  if (!lua_isnoneornil(L, 3)) {
    check_table(L, 3, "rille.metric's options");
    check_options(L, 3, "rille.metric", {"step"});
    m.step = option_number(L, 3, "step");
    if (m.step && !std::isfinite(*m.step))
      return make_error(ErrorKind::invalid, fmt::format("rille.metric: step = {} of '{}'", *m.step, m.name),
                        "a step is a finite number");
  }
  m.at_us = v.run.loop().clock().wall_us();
  RILLE_CHECK(v.run.metric(m));
  return 0;
}

}  // namespace

int open_log(lua_State* L) {
  lua_settop(L, 1);
  lua_newtable(L);
  set_functions(L, {{"log", bind<log>}, {"progress", bind<progress>}, {"metric", bind<metric>}});
  add_words(L, 1);
  return 0;
}

}  // namespace rille::lua
