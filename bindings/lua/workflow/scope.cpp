// Scope primitives: each calls one method of the Run. flow.cpp decides the order of unwinding.
#include "bindings/lua/workflow/verb.hpp"

namespace rille::lua {

namespace {

int root_scope(lua_State* L) {
  Verb v = begin_verb(L, "scope", Verbs::anywhere);
  push(L, static_cast<std::int64_t>(v.run.root_scope(v.id)));
  return 1;
}

int scope_enter(lua_State* L) {
  Verb v = begin_verb(L, "scope");
  if (const Error* why = v.run.cancelled(v.id)) raise(L, *why);
  push(L, static_cast<std::int64_t>(v.run.scope_enter(v.id, check_name(L, 1, "scope"))));
  hold_coroutine(L, v.fiber, 1);
  return 1;
}

// scope_settle(scope, ok, error): waits for the fibers that the scope started.
int scope_settle(lua_State* L) {
  Verb v = begin_verb(L, "scope", Verbs::anywhere);
  auto scope = static_cast<engine::ScopeId>(check_integer(L, 1, "scope"));
  std::optional<Error> failure;
  if (!lua_toboolean(L, 2)) failure = caught_error(L, 3);
  return await(L, v.run.scope_settle(v.id, scope, std::move(failure)), push_nothing, Waits::cleanup);
}

// scope_release(scope, list of lease ids that move to the parent scope): releases the scope's other leases.
int scope_release(lua_State* L) {
  Verb v = begin_verb(L, "scope", Verbs::anywhere);
  auto scope = static_cast<engine::ScopeId>(check_integer(L, 1, "scope"));
  std::vector<std::string> kept;
  if (lua_istable(L, 2))
    for (std::size_t i = 1, n = lua_objlen(L, 2); i <= n; ++i) {
      lua_rawgeti(L, 2, static_cast<int>(i));
      kept.emplace_back(check_text(L, -1, "lease"));
      lua_pop(L, 1);
    }
  return await(L, v.run.scope_release(v.id, scope, std::move(kept)), push_nothing, Waits::cleanup);
}

int scope_leave(lua_State* L) {
  Verb v = begin_verb(L, "scope", Verbs::anywhere);
  v.run.scope_leave(v.id, static_cast<engine::ScopeId>(check_integer(L, 1, "scope")));
  hold_coroutine(L, v.fiber, -1);
  v.host.left_scope();
  return 0;
}

// Raises if the fiber was cancelled before it began.
int checkpoint(lua_State* L) {
  Verb v = begin_verb(L, "scope", Verbs::anywhere);
  if (const Error* why = v.run.cancelled(v.id)) raise(L, *why);
  return 0;
}

int is_cancelled(lua_State* L) {
  lua_pushboolean(L, is_error(L, 1) && error_from_table(L, 1).kind == ErrorKind::cancelled);
  return 1;
}

// note_error(error): reports an error that a defer raised while another error was already propagating.
int note_error(lua_State* L) {
  Verb v = begin_verb(L, "defer", Verbs::anywhere);
  if (!v.run.hooks().event) return 0;
  Value event;
  event.set("event", "warning")
      .set("what", "a deferred function failed")
      .set("error", error_to_value(caught_error(L, 1)));
  v.run.hooks().event(event);
  return 0;
}

int check_not_in_step(lua_State* L) {
  begin_verb(L, lua_tostring(L, 1));
  return 0;
}

}  // namespace

void add_scope_functions(lua_State* L) {
  set_functions(L, {{"root_scope", bind<root_scope>},
                    {"scope_enter", bind<scope_enter>},
                    {"scope_leave", bind<scope_leave>},
                    {"checkpoint", bind<checkpoint>},
                    {"is_cancelled", bind<is_cancelled>},
                    {"note_error", bind<note_error>},
                    {"check_not_in_step", bind<check_not_in_step>}});
  set_async(L, "scope_settle", bind<scope_settle>);
  set_async(L, "scope_release", bind<scope_release>);
}

}  // namespace rille::lua
