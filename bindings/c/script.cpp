// Loads scripts, finds their functions, and calls functions that do not wait.
#include "bindings/c/script.hpp"

#include <fmt/format.h>

#include "bindings/host/keys.hpp"
#include "bindings/host/open.hpp"
#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/workflow/engine/run.hpp"

namespace rille::capi {

using namespace rille::host;

namespace {

constexpr std::size_t scripts_max = 1000;

// The body of a call's fiber stores the results of its function, and never fails. Its chunk name prevents interrupts.
const char* const calls_source = R"lua(
local core, answers = ...
local scope, trace, xpcall, select, unpack = core.words.scope, core.flow.trace, core.xpcall, select, unpack
local function keep(call, ok, ...)
  answers[call] = { n = select("#", ...), ok = ok, ... }
end
return function(call, fn, ...)
  local n, arguments = select("#", ...), { ... }
  local function body() return fn(unpack(arguments, 1, n)) end
  return function() keep(call, xpcall(scope, trace, "call", body)) end
end
)lua";

Execution rest(rille_script* s, FunctionRef main) {
  Value none;
  Result<Value> how = co_await s->parts->run->execute(s->host(), main, none);
  s->ended = true;
  s->runtime->loop->post([self = s->shared_from_this()] {
    if (self->freed) self->close();
  });
}

// Starts the run that the calls' fibers belong to.
Result<> open(rille_script& s) {
  rille_run& r = *s.parts;
  engine::RunHooks told = hooks(&r);
  told.children = nullptr;
  r.run = engine::make_script_run(*s.runtime->loop, r.id, r.args, std::move(told));
  s.host().bind_run(*r.run);
  s.host().grant(r.grants);
  FunctionRef main = 0;
  RILLE_CHECK(protect(s.host().lua(), [&](lua_State* L) {
    lua_newtable(L);
    lua_pushvalue(L, -1);
    s.answers = luaL_ref(L, LUA_REGISTRYINDEX);
    load_ours(L, calls_source, "=[rille.flow]");
    push_rille_core(L);
    lua_pushvalue(L, 1);
    lua_call(L, 2, 1);
    s.begin = luaL_ref(L, LUA_REGISTRYINDEX);
    push_rille_core(L);
    lua_getfield(L, -1, "flow");
    lua_getfield(L, -1, "rest");
    main = s.host().keep_function(L, -1);
    lua_settop(L, 0);
  }));
  if (!s.runtime->interrupter->add(&s.host()))
    return make_error(ErrorKind::state, "too many scripts are loaded", "free some with rille_script_free");
  s.host().set_budget(1, std::make_shared<Budget>());  // the resting fiber has no limits
  s.budget = s.host().make_budget();
  s.execution = rest(&s, main);
  return {};
}

// Runs the script's text and keeps the value that it returns.
Result<> run_chunk(rille_script& s) {
  int ref = LUA_NOREF;
  RILLE_CHECK(protect(s.host().lua(), [&](lua_State* L) {
    get_registry(L, &key_functions);
    lua_rawgeti(L, -1, static_cast<int>(s.parts->main));
    ref = luaL_ref(L, LUA_REGISTRYINDEX);
    luaL_unref(L, -1, static_cast<int>(s.parts->main));
  }));
  RILLE_CHECK(s.bridge().call_keeping(ref, s.budget.get(), s.result));
  luaL_unref(s.host().lua(), LUA_REGISTRYINDEX, ref);
  return {};
}

Result<> load(Result<std::shared_ptr<rille_run>> prepared, rille_script** out) {
  RILLE_TRY(std::shared_ptr<rille_run> parts, std::move(prepared));
  rille_runtime& rt = *parts->runtime;
  if (rt.scripts.size() >= scripts_max)
    return make_error(ErrorKind::state, fmt::format("{} scripts are loaded, which is the limit", scripts_max),
                      "free some with rille_script_free");
  auto s = std::make_shared<rille_script>();
  s->runtime = &rt;
  s->parts = std::move(parts);
  s->bridge().script = s.get();
  s->bridge().run = nullptr;
  rt.scripts.push_back(s);
  Result<> done = open(*s);
  if (done) done = run_chunk(*s);
  if (!done) {
    s->free();
    return done;
  }
  *out = s.get();
  return {};
}

// Pushes the value at a path such as "rules.check". Reads tables without metamethods, so no code of the script runs.
void push_named(lua_State* L, const rille_script& s, std::string_view name) {
  lua_rawgeti(L, LUA_REGISTRYINDEX, s.result);
  bool first = true;
  while (!name.empty()) {
    const std::size_t dot = name.find('.');
    const std::string_view part = name.substr(0, dot);
    name = dot == std::string_view::npos ? std::string_view() : name.substr(dot + 1);
    const bool table = lua_istable(L, -1);
    if (table) {
      push(L, part);
      lua_rawget(L, -2);
    }
    if (first && (!table || lua_isnil(L, -1))) {
      push_rille_core(L);
      lua_getfield(L, -1, "store");
      push(L, part);
      lua_rawget(L, -2);
    } else if (!table) {
      lua_pushnil(L);
    }
    first = false;
  }
}

std::vector<std::string> names_of(lua_State* L, const rille_script& s) {
  std::vector<std::string> names;
  lua_rawgeti(L, LUA_REGISTRYINDEX, s.result);
  if (!lua_istable(L, -1)) return names;
  lua_pushnil(L);
  while (lua_next(L, -2)) {
    if (lua_type(L, -2) == LUA_TSTRING && lua_isfunction(L, -1)) names.emplace_back(lua_tostring(L, -2));
    lua_pop(L, 1);
  }
  return names;
}

Result<rille_script_function> find(rille_script& s, const std::string& name) {
  int ref = LUA_NOREF;
  std::string got;
  std::vector<std::string> names;
  RILLE_CHECK(protect(s.host().lua(), [&](lua_State* L) {
    push_named(L, s, name);
    if (lua_isfunction(L, -1)) {
      ref = luaL_ref(L, LUA_REGISTRYINDEX);
    } else {
      got = describe(L, -1);
      names = names_of(L, s);
    }
  }));
  if (ref != LUA_NOREF) return s.runtime->holdings->functions.add({&s.bridge(), ref});
  const std::string near = did_you_mean(name, names);
  return make_error(ErrorKind::invalid,
                    name.empty() ? fmt::format("the script returned {}, not a function", got)
                                 : fmt::format("'{}' is {}, not a function of the script", name, got),
                    !near.empty() ? fmt::format("did you mean '{}'?", near)
                                  : "the script returns a table with its functions, or sets globals");
}

// Whether the host program may call functions of this state now.
Result<> may_call(const Bridge& b) {
  if (b.script) return {};
  if (!b.host().has_run() || b.run->state != RILLE_RUN_RUNNING || b.run->settled)
    return make_error(ErrorKind::state, "the run of this function is not active",
                      "call it while the run is active, or keep the script loaded: rille_script_load");
  if (b.host().control().mode() == engine::Mode::durable && !(b.inside() && b.host().current()))
    return make_error(ErrorKind::state,
                      "a function of a journaled run can be called only inside the host function that received it: a "
                      "resumed run could not repeat the call",
                      "use RILLE_RULES_OPEN, or keep the script loaded: rille_script_load");
  return {};
}

}  // namespace
}  // namespace rille::capi

using namespace rille;
using namespace rille::capi;

rille_error* rille_script_load(rille_runtime* rt, const char* name, const char* source, size_t length,
                               const rille_run_options* options, rille_script** script) {
  if (script) *script = nullptr;
  return guarded([&]() -> Result<> {
    if (!name || !source || !script)
      return null_argument("rille_script_load", !name ? "name" : !source ? "source" : "script");
    return load(prepare_source(rt, name, std::string(source, length), options), script);
  });
}

rille_error* rille_script_load_file(rille_runtime* rt, const char* path, const rille_run_options* options,
                                    rille_script** script) {
  if (script) *script = nullptr;
  return guarded([&]() -> Result<> {
    if (!path || !script) return null_argument("rille_script_load_file", !path ? "path" : "script");
    return load(prepare_file(rt, path, options), script);
  });
}

rille_error* rille_script_find(rille_script* script, const char* name, rille_script_function* function) {
  if (function) *function = 0;
  return guarded([&]() -> Result<> {
    if (!script || !name || !function)
      return null_argument("rille_script_find", !script ? "script" : !name ? "name" : "function");
    RILLE_CHECK(check_call(script->runtime));
    if (!script->parts->host) return make_error(ErrorKind::state, "the script has ended: rille_shutdown did not wait");
    RILLE_TRY(*function, find(*script, name));
    return {};
  });
}

rille_error* rille_script_call(rille_runtime* rt, rille_script_function function, const rille_value* arguments,
                               size_t argument_count, rille_value* results, size_t result_count) {
  if (results) std::fill_n(results, result_count, rille_value{});
  return guarded([&]() -> Result<> {
    RILLE_CHECK(check_call(rt));
    if ((!arguments && argument_count) || (!results && result_count))
      return null_argument("rille_script_call", !results && result_count ? "results" : "arguments");
    RILLE_TRY(ScriptFunction * f, rt->holdings->function(function));
    Bridge& b = *f->bridge;
    RILLE_CHECK(may_call(b));
    struct Under {
      int& calls;
      explicit Under(int& n) : calls(n) { ++calls; }
      ~Under() { --calls; }
    } under(rt->script_calls);
    Result<> done =
        b.call(f->ref, b.script ? b.script->budget.get() : nullptr, arguments, argument_count, results, result_count);
    if (b.depth() == 0 && !rt->turning && !b.host().current()) rt->holdings->release_due();
    return done;
  });
}

int64_t rille_script_memory_bytes(const rille_script* script) {
  return script && script->parts->host ? static_cast<int64_t>(script->host().state().bytes_used()) : 0;
}

void rille_script_free(rille_script* script) {
  if (!script || left_to_owner(script->runtime, [script] { rille_script_free(script); })) return;
  rille_runtime* rt = script->runtime;
  try {
    script->free();
    if (!rt->turning) rt->holdings->release_due();
  } catch (const std::exception&) {}
}
