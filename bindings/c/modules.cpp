// Host functions: modules for scripts, made of functions of the host program. The effect decides how a call runs: a
// RILLE_STEP goes through Run::recorded, unless the call is made inside a step, which is recorded as a whole.
#include <fmt/format.h>

#include <cctype>

#include "bindings/c/call.hpp"
#include "bindings/host/await.hpp"
#include "bindings/host/codec.hpp"
#include "bindings/host/open.hpp"
#include "bindings/host/stdlib_table.hpp"
#include "runtime/core/base/did_you_mean.hpp"
#include "runtime/workflow/engine/run.hpp"

namespace rille::capi {

namespace {

using namespace rille::host;

constexpr std::size_t copies = 2;  // a journaled call's arguments are copied for the function and for the journal

Result<std::shared_ptr<CallState>> read_call(lua_State* L, const HostFunction& f, Bridge& bridge) {
  LuaHost& host = bridge.host();
  auto call = std::make_shared<CallState>(host.loop());
  call->function = &f;
  call->run_id = host.run().id();
  call->journaled = true;
  call->memory = host.options().memory;
  call->gate = bridge.runtime().gate;
  call->holdings = bridge.runtime().holdings;
  for (int i = 1; i <= lua_gettop(L); ++i) {
    std::size_t bytes = 0;
    RILLE_TRY(Value argument, to_value(L, i, fmt::format("argument {} of {}", i, f.full_name), &bytes));
    RILLE_TRY(MemoryHeld held,
              MemoryHeld::take(call->memory, MemoryUse::Part::results, static_cast<std::int64_t>(copies * bytes)));
    call->held.push_back(std::move(held));
    call->arguments.push_back(std::move(argument));
  }
  return call;
}

char key_waits;  // its address, as light userdata, is the result that means "the call waits" (calls_shim)

// The wrapper of host functions. It is faster than the shim of set_async: one result, without a flag before it. Its
// chunk name prevents interrupts between the call and the wait.
const char* const calls_shim = R"lua(
local waits, wait, unpack_result = ...
return function(call)
  return function(...)
    local result = call(...)
    if result ~= waits then return result end
    return unpack_result(wait())
  end
end
)lua";

int say_waits(lua_State* L, Bridge& bridge, std::shared_ptr<CallState> call) {
  bridge.set_waiting(std::move(call));
  lua_pushlightuserdata(L, &key_waits);
  return 1;
}

// Waits for the call just made: a RILLE_STEP in a journaled run, or a function that has suspended its call.
int wait_for_call(lua_State* L) {
  Bridge& bridge = *static_cast<Bridge*>(lua_touserdata(L, lua_upvalueindex(1)));
  LuaHost& host = bridge.host();
  Fiber& fiber = *host.current();
  engine::Run& run = host.run();
  const Bridge::Waiting waiting(bridge);  // marks the call as abandoned if the wait cannot begin
  const std::shared_ptr<CallState>& call = waiting.call();
  engine::Operation operation("host", call->function->full_name, Value(call->arguments),
                              call->journaled ? script_position(L) : std::string());
  std::function<Async<Value>(CancelToken)> live = [call](CancelToken token) {
    return call->journaled ? perform(call, std::move(token)) : wait_for(call, std::move(token));
  };
  auto push_answer = [call, &bridge](lua_State* l, Value value) {
    if (!call->journaled && call->answer.copied)
      bridge.push(l, call->answer.copied->value, ValueName{"the result", 0, {}});
    else push_value(l, value);
    return 1;
  };
  const bool recorded = call->journaled || run.mode() != engine::Mode::durable;
  const int results =
      recorded ? await(L, run.recorded(fiber.id, std::move(operation), std::move(live)), push_answer, Waits::engine)
               : await(L, wait_for(call, CancelToken()), push_answer);
  waiting.begun();
  return results;
}

Result<int> give_result(lua_State* L, rille_call& call, Bridge& bridge) {
  switch (call.has) {
    case rille_call::Has::error: return std::move(call.more().error);
    case rille_call::Has::suspended: return say_waits(L, bridge, call.state);
    case rille_call::Has::pushed: break;
    case rille_call::Has::number: lua_pushnumber(L, call.number); break;
    case rille_call::Has::boolean: lua_pushboolean(L, call.boolean); break;
    default: lua_pushnil(L);
  }
  return 1;
}

Result<int> invoke(lua_State* L) {
  const HostFunction& f = *static_cast<const HostFunction*>(lua_touserdata(L, lua_upvalueindex(1)));
  Bridge& bridge = *static_cast<Bridge*>(lua_touserdata(L, lua_upvalueindex(2)));
  LuaHost& host = bridge.host();
  Fiber* fiber = host.current();
  if (!fiber || !host.has_run())
    return make_error(ErrorKind::state, fmt::format("{} can be called only while a run is executed", f.full_name));
  const bool journaled = host.control().mode() == engine::Mode::durable;
  if (journaled && f.effect == RILLE_VOLATILE && !host.effects_allowed())
    return make_error(
        ErrorKind::state,
        fmt::format("the results of {} are not recorded, so a workflow may call it only inside a step", f.full_name),
        fmt::format("rille.step(\"{}\", function() return {}(...) end)", f.name, f.full_name));
  if (journaled && f.effect == RILLE_STEP && fiber->step.empty()) {
    RILLE_TRY(std::shared_ptr<CallState> call, read_call(L, f, bridge));
    return say_waits(L, bridge, std::move(call));
  }
  check_cancelled(L);
  rille_call call(f, bridge, L);
  {
    Bridge::Inside inside(bridge);
    f.function(&call, f.payload);
  }
  return give_result(L, call, bridge);
}

Result<int> missing(lua_State* L) {
  const auto& module = *static_cast<const Modules::value_type*>(lua_touserdata(L, lua_upvalueindex(1)));
  std::string key = lua_type(L, 2) == LUA_TSTRING ? std::string(check_text(L, 2, "key")) : describe(L, 2);
  std::vector<std::string> names;
  for (const auto& [name, f] : module.second) names.push_back(name);
  std::string near = did_you_mean(key, names);
  return make_error(ErrorKind::invalid, fmt::format("{}.{} does not exist", module.first, key),
                    near.empty() ? "" : fmt::format("did you mean {}?", near));
}

// Pushes function(call), which wraps a host function.
void push_shim(lua_State* L, Bridge& bridge) {
  load_ours(L, calls_shim, "=[rille]");
  lua_pushlightuserdata(L, &key_waits);
  lua_pushlightuserdata(L, &bridge);
  lua_pushcclosure(L, bind<wait_for_call>, 1);
  lua_pushcfunction(L, unpack_result);
  lua_call(L, 3, 1);
}

void push_module(lua_State* L, Bridge& bridge, const Modules::value_type& module) {
  push_shim(L, bridge);
  const int shim = lua_gettop(L);
  lua_newtable(L);
  for (const auto& [name, f] : module.second) {
    lua_pushvalue(L, shim);
    lua_pushlightuserdata(L, const_cast<HostFunction*>(&f));
    lua_pushlightuserdata(L, &bridge);
    lua_pushcclosure(L, bind<invoke>, 2);
    lua_call(L, 1, 1);
    lua_setfield(L, -2, name.c_str());
  }
  lua_newtable(L);
  lua_pushlightuserdata(L, const_cast<Modules::value_type*>(&module));
  lua_pushcclosure(L, bind<missing>, 1);
  lua_setfield(L, -2, "__index");
  set_field(L, "__metatable", module.first);
  lua_setmetatable(L, -2);
  lua_remove(L, shim);
}

bool is_name(const char* text) {
  if (!text || !*text || std::isdigit(static_cast<unsigned char>(*text))) return false;
  for (const char* c = text; *c; ++c)
    if (!std::isalnum(static_cast<unsigned char>(*c)) && *c != '_') return false;
  return true;
}

Result<> check_module(const rille_runtime& rt, const char* name) {
  if (!is_name(name))
    return make_error(ErrorKind::invalid, fmt::format("'{}' is not a module name", name ? name : "NULL"),
                      "use letters, digits and _");
  std::string_view word(name);
  if (word == "rille" || stdlib_source(name))
    return make_error(ErrorKind::invalid, fmt::format("'{}' is one of Rille's own modules", name),
                      "choose another name");
  for (const char* taken : {"string", "table", "math", "coroutine", "bit", "io", "os", "debug", "ffi", "jit"})
    if (word == taken)
      return make_error(ErrorKind::invalid, fmt::format("'{}' is one of Lua's libraries", name), "choose another name");
  if (rt.modules.count(name))
    return make_error(ErrorKind::state, fmt::format("the module '{}' is registered already", name));
  return {};
}

Result<HostFunction> read_function(const char* module, const rille_function_spec& given) {
  rille_function_spec spec{};
  std::memcpy(&spec, &given, std::min(given.struct_size, sizeof spec));
  if (!is_name(spec.name))
    return make_error(ErrorKind::invalid,
                      fmt::format("{}: '{}' is not a function name", module, spec.name ? spec.name : "NULL"),
                      "use letters, digits and _");
  if (!spec.function)
    return make_error(ErrorKind::invalid,
                      fmt::format("{}.{}: the pointer to its C function is NULL", module, spec.name),
                      "set the field function of its rille_function_spec");
  if (spec.effect < RILLE_PURE || spec.effect > RILLE_VOLATILE)
    return make_error(ErrorKind::invalid,
                      fmt::format("{}.{}: effect {} is unknown", module, spec.name, static_cast<int>(spec.effect)),
                      "declare RILLE_PURE, RILLE_STEP or RILLE_VOLATILE");
  HostFunction f;
  f.module = module;
  f.name = spec.name;
  f.full_name = f.module + "." + f.name;
  f.effect = spec.effect;
  f.function = spec.function;
  f.payload = spec.payload;
  return f;
}

}  // namespace

Result<std::unique_ptr<Bridge>> install_modules(LuaHost& host, rille_runtime* runtime) {
  auto bridge = std::make_unique<Bridge>(*runtime, host);
  RILLE_CHECK(bridge->open());
  RILLE_CHECK(protect(host.lua(), [&](lua_State* L) {
    push_rille_core(L);
    lua_getfield(L, -1, "loaded");
    for (const auto& module : runtime->modules) {
      push_module(L, *bridge, module);
      lua_setfield(L, -2, module.first.c_str());
    }
    lua_settop(L, 0);
  }));
  return bridge;
}

}  // namespace rille::capi

using namespace rille;
using namespace rille::capi;

rille_error* rille_register_module(rille_runtime* rt, const char* name, const rille_function_spec* functions,
                                   size_t count) {
  return guarded([&]() -> Result<> {
    RILLE_CHECK(check_call(rt));
    RILLE_CHECK(check_module(*rt, name));
    if (!functions || count == 0)
      return make_error(ErrorKind::invalid, fmt::format("the module '{}' has no function", name),
                        "pass rille_register_module an array of at least one function, and its count");
    // A host program built with an older header has smaller structs, so use its struct size as the stride.
    std::size_t stride = functions->struct_size;
    if (stride < offsetof(rille_function_spec, payload))
      return make_error(ErrorKind::invalid, fmt::format("{}: the field struct_size of its structure is not set", name),
                        "set struct_size of each rille_function_spec to sizeof(rille_function_spec)");
    std::map<std::string, HostFunction> made;
    for (std::size_t i = 0; i < count; ++i) {
      const auto* at = reinterpret_cast<const char*>(functions) + i * stride;
      RILLE_TRY(HostFunction f, read_function(name, *reinterpret_cast<const rille_function_spec*>(at)));
      if (!made.emplace(f.name, f).second)
        return make_error(ErrorKind::invalid, fmt::format("{} is registered twice", f.full_name),
                          "give each function of the module its own name");
    }
    rt->modules.emplace(name, std::move(made));
    rt->engine->offer_module(name);
    return {};
  });
}
