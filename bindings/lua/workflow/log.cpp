// rille.log and rille.progress: pass an event to the run's hooks without suspending the fiber.
#include <fmt/format.h>

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

}  // namespace

int open_log(lua_State* L) {
  lua_settop(L, 1);
  lua_newtable(L);
  set_functions(L, {{"log", bind<log>}, {"progress", bind<progress>}});
  add_words(L, 1);
  return 0;
}

}  // namespace rille::lua
