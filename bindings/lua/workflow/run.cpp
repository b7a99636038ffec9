// Verbs about the run itself: sleep, now, signal, budget; and the fields rille.home and rille.run_id.
#include <fmt/format.h>

#include <algorithm>

#include "bindings/lua/workflow/verb.hpp"

namespace rille::lua {

namespace {

// sleep("30s") or sleep("name", "30s"). Inside a step's body the sleep is not recorded.
int sleep(lua_State* L) {
  Verb v = begin_verb(L, "sleep", Verbs::anywhere);
  std::string name = "sleep";
  int at = 1;
  if (lua_gettop(L) >= 2) {
    name = check_name(L, 1, "sleep");
    at = 2;
  }
  std::int64_t ms = check_duration_ms(L, at, "rille.sleep");
  if (!v.fiber.step.empty()) return await(L, sleep_for(v.host.loop(), ms), push_nothing);
  return await(L, v.run.sleep(v.id, std::move(name), ms, v.source), push_nothing, Waits::engine);
}

int now(lua_State* L) {
  Verb v = begin_verb(L, "now", Verbs::anywhere);
  if (!v.fiber.step.empty()) {
    // first result true: the verb did not suspend, and the Lua wrapper returns the other results
    lua_pushboolean(L, 1);
    push(L, static_cast<double>(v.host.loop().clock().wall_us()) / 1e6);
    return 2;
  }
  return await(
      L, v.run.now(v.id, v.source),
      [](lua_State* l, double seconds) {
        push(l, seconds);
        return 1;
      },
      Waits::engine);
}

// patched("id") -> whether this run executes the new code that the script guards with this patch id
int patched(lua_State* L) {
  Verb v = begin_verb(L, "patched");
  std::string name = check_name(L, 1, "patched");
  return await(
      L, v.run.patched(v.id, std::move(name), v.source),
      [](lua_State* l, bool yes) {
        lua_pushboolean(l, yes);
        return 1;
      },
      Waits::engine);
}

// rille.signal(name, {timeout=, default=}): waits for a signal that `rille signal` sends
Result<int> signal(lua_State* L) {
  Verb v = begin_verb(L, "signal");
  std::string name = check_name(L, 1, "signal");
  check_options(L, 2, "rille.signal", {"timeout", "default"});
  std::int64_t timeout_ms = option_duration_ms(L, 2, "timeout").value_or(0);
  Value otherwise;
  auto held = std::make_shared<MemoryHeld>();  // counts the default, which is kept while the fiber waits
  if (lua_istable(L, 2)) {
    lua_getfield(L, 2, "default");
    RILLE_TRY(otherwise, to_value(L, -1, "default"));
    if (!otherwise.is_null()) {
      MemoryHeld of_text;
      RILLE_TRY(const std::string json, counted_json(otherwise, v.host.options().memory, 1, of_text));
      RILLE_TRY(*held, MemoryHeld::take(v.host.options().memory, MemoryUse::Part::results,
                                        static_cast<std::int64_t>(json.size())));
    }
  }
  return await(
      L, v.run.signal(v.id, std::move(name), timeout_ms, std::move(otherwise), v.source),
      [held](lua_State* l, Value value) { return push_decoded(l, std::move(value)); }, Waits::engine);
}

// rille.run(script, args, {id=}): starts a child run
Result<int> run(lua_State* L) {
  Verb v = begin_verb(L, "run");
  engine::ChildSpec spec;
  spec.script = std::string(check_text(L, 1, "rille.run"));
  if (spec.script.empty()) raise_invalid(L, "rille.run: the script's file name is empty");
  spec.may_read = [grants = v.host.grants(), folder = v.host.options().script_directory](const std::string& path) {
    Result<std::string> real = grants.read_code(path, folder);
    return real ? success() : Result<>(std::move(real).error());
  };
  RILLE_TRY(spec.args, to_value(L, 2, "args"));
  if (spec.args.is_null()) spec.args = Value(Value::Object{});
  if (!spec.args.as_object() && !(spec.args.as_array() && spec.args.as_array()->empty()))
    raise_invalid(L, "rille.run: expected the arguments as a table of names and values",
                  "rille.run(\"eval.lua\", { model = \"out/model\" })");
  check_options(L, 3, "rille.run", {"id"});
  spec.id = option_text(L, 3, "id").value_or("");
  return await(L, v.run.child(v.id, std::move(spec), v.source), push_decoded, Waits::engine);
}

// The address of alerts: https://.., mailto:A,B, or env:NAME.
Result<> may_alert(const Grants& grants, const std::string& url) {
  const char* what = "rille.budget's alert";
  if (url.empty()) return {};
  if (url.starts_with("env:")) return grants.env(url.substr(4));
  if (!url.starts_with("mailto:")) return grants.connect_to_url(what, url);
  for (std::size_t at = 7; at <= url.size();) {
    const std::size_t end = std::min(url.find(',', at), url.size());
    RILLE_CHECK(grants.send_mail(what, url.substr(at, end - at)));
    at = end + 1;
  }
  return {};
}

Result<int> budget(lua_State* L) {
  Verb v = begin_verb(L, "budget");
  check_options(L, 1, "rille.budget", {"limit", "alert", "alert_url", "tag", "month"});
  check_table(L, 1, "rille.budget");
  RILLE_TRY(Value options, to_value(L, 1, "budget"));
  RILLE_CHECK(may_alert(v.host.grants(), options.text("alert_url")));
  RILLE_CHECK(v.run.set_budget(v.id, options));
  return 0;
}

Result<int> home(lua_State* L) {
  std::string folder = begin_verb(L, "home", Verbs::anywhere).run.home();
  if (folder == engine::in_memory_home)
    return make_error(ErrorKind::state,
                      "rille.home: this run has no folder: its host program keeps all state in memory",
                      "open the runtime with a folder as its home");
  push(L, folder);
  return 1;
}

int run_id(lua_State* L) {
  push(L, begin_verb(L, "run_id", Verbs::anywhere).run.id());
  return 1;
}

// On an agent: returns the last checkpoint that an earlier attempt of this call published, or nil.
int last_checkpoint(lua_State* L) {
  push_value(L, LuaHost::of(L).options().last_checkpoint);
  return 1;
}

// preempting() -> nil, or the seconds until this machine is reclaimed and whether the call continues on another. It
// yields to the loop once, so that code that never waits receives the provider's notice as well.
Async<> turn(Loop& loop) { co_return co_await sleep_for(loop, 0); }

int run_preempting(lua_State* L) {
  Verb v = begin_verb(L, "preempting", Verbs::anywhere);
  if (!v.host.options().preempting) {
    // first result true: the verb did not suspend, and the Lua wrapper returns the other results
    lua_pushboolean(L, 1);
    return 1;
  }
  return await(L, turn(v.host.loop()), [](lua_State* l) {
    LuaHost& host = LuaHost::of(l);
    auto [deadline_us, leave] = host.options().preempting();
    if (!deadline_us) return 0;
    std::int64_t left_us = std::max<std::int64_t>(0, deadline_us - host.loop().clock().wall_us());
    push(l, static_cast<double>(left_us) / 1e6);
    lua_pushboolean(l, leave);
    return 2;
  });
}

// leave(): ends the call on this machine; the call continues on another machine from its last checkpoint. If the call
// would not be continued, leave() does nothing.
int leave(lua_State* L) {
  Verb v = begin_verb(L, "leave", Verbs::anywhere);
  if (!v.host.options().preempting || !v.host.options().preempting().second) return 0;
  Error e = make_error(ErrorKind::state, "the call stops, because the provider will take its machine away",
                       "no action is needed: it continues on another machine from its last checkpoint");
  e.code = "preempted";
  raise(L, std::move(e));
}

// rille.error{kind=, message=, hint=, ..}: raises a structured error
int raise_error(lua_State* L) {
  check_table(L, 1, "rille.error");
  check_options(L, 1, "rille.error",
                {"kind", "message", "hint", "retryable", "retry_after", "provider", "operation", "code", "http_status",
                 "request_id", "resource", "cause"});
  Error e = error_from_table(L, 1);
  if (auto kind = option_text(L, 1, "kind")) {
    if (to_string(error_kind_from(*kind)) != *kind)
      raise_invalid(L, fmt::format("rille.error: '{}' is not a kind of error", *kind),
                    "the kinds are: invalid config auth quota capacity network timeout cancelled budget "
                    "state io integrity device memory divergence internal denied");
  } else {
    e.kind = ErrorKind::invalid;
  }
  if (e.message.empty())
    raise_invalid(L, "rille.error: the message is missing",
                  "rille.error { kind = \"state\", message = \"what failed\" }");
  raise(L, std::move(e));
}

}  // namespace

int open_run(lua_State* L) {
  lua_settop(L, 1);
  lua_newtable(L);
  set_async(L, "sleep", bind<sleep>);
  set_async(L, "now", bind<now>);
  set_async(L, "patched", bind<patched>);
  set_async(L, "signal", bind<signal>);
  set_async(L, "run", bind<run>);
  set_async(L, "preempting", bind<run_preempting>);
  set_functions(L, {{"budget", bind<budget>}, {"error", bind<raise_error>}, {"leave", bind<leave>}});
  add_words(L, 1);
  push_rille_core(L);
  lua_getfield(L, -1, "computed");
  set_functions(L, {{"home", bind<home>}, {"run_id", bind<run_id>}, {"last_checkpoint", bind<last_checkpoint>}});
  return 0;
}

}  // namespace rille::lua
