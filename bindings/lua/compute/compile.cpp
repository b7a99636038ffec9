// C functions for stdlib/compile.lua: begin, finish and abandon one call of a compiled function.
#include "runtime/compute/tensor/compile.hpp"

#include <fmt/format.h>

#include "bindings/host/reads.hpp"
#include "bindings/lua/compute/communicator.hpp"
#include "bindings/lua/compute/fallbacks.hpp"

namespace rille::lua {

namespace {

using tensor::Compiled;

struct CompiledHandle {
  std::shared_ptr<Graph> graph;         // graph of the device of the first tensor argument
  std::unique_ptr<Compiled> on_device;  // compiled code for `graph`; created by the first call
  bool check = false;
  tensor::Recompute recompute = tensor::Recompute::none;
  bool epilogues = false;
  int accumulate = 1;
  host::Reads reads;
  std::string read;               // the part of the cache key that describes `reads`
  std::uint64_t suspensions = 0;  // how often the fiber had been suspended when the call began
  bool traced = false;
};

// compiled(check, recompute, epilogues, accumulate) -> handle of a new compiled function
Result<int> compiled(lua_State* L) {
  tensor_state(L);
  const std::string_view level = lua_isnoneornil(L, 2) ? "none" : check_text(L, 2, "rille.compile: recompute");
  const auto recompute = level == "none"          ? tensor::Recompute::none
                         : level == "elementwise" ? tensor::Recompute::elementwise
                                                  : tensor::Recompute::norms;
  if (level != "none" && level != "elementwise" && level != "norms")
    raise_invalid(L, fmt::format("rille.compile: recompute is '{}'", level), "\"none\", \"elementwise\" or \"norms\"");
  CompiledHandle h;
  h.check = lua_toboolean(L, 1) != 0;
  h.recompute = recompute;
  h.epilogues = lua_toboolean(L, 3) != 0;
  h.accumulate = static_cast<int>(lua_tointeger(L, 4));
  push_object(L, std::move(h));
  return 1;
}

int push_all(lua_State* L, const std::vector<Tensor>& list) {
  if (!lua_checkstack(L, static_cast<int>(list.size()) + 8))
    raise_invalid(L, "a compiled function returned more results than the Lua stack can hold",
                  "return fewer tensors, for example joined by rille.cat");
  for (const Tensor& t : list) push_tensor(L, t);
  return static_cast<int>(list.size());
}

// begin(handle, function, table for the variables that the function reads, ...) -> true and the arguments for calling
// the function, or false and the results of a replay
Result<int> begin(lua_State* L) {
  constexpr int first = 4;  // stack index of the compiled function's first argument
  auto& h = check_object<CompiledHandle>(L, 1, "compiled function");
  if (h.reads.look(L, 2, 3)) {
    h.read.clear();
    for (const auto& place : h.reads.places()) h.read += fmt::format("|reads {}={}", place.name, place.value);
  }
  TensorState& state = tensor_state(L);
  std::vector<Tensor> inputs;
  std::string key = state.mode.empty() ? "" : "mode=" + state.mode;
  if (const auto cast = state.modes().autocast) key += fmt::format("|autocast={}", name_of(*cast));
  if (state.modes().tf32) key += "|tf32=on";
  if (!state.modes().grad_enabled) key += "|no_grad=on";
  // A trace with gradient averaging must not be replayed for a call without averaging, and vice versa.
  if (const auto* a = averaging(L))
    key += fmt::format("|ranks={}/{}", static_cast<const void*>(a->ranks.get()), a->parameters.size());
  key += h.read;
  int last = lua_gettop(L);
  for (int i = first; i <= last; ++i) {
    LuaHost::of(L).check(L);
    int type = lua_type(L, i);
    if (test_tensor(L, i)) {
      inputs.push_back(check_tensor(L, i, "a compiled function's argument"));
      key += "|t";
    } else if (type == LUA_TNUMBER) {
      key += fmt::format("|{}", lua_tonumber(L, i));
    } else if (type == LUA_TBOOLEAN || type == LUA_TNIL) {
      key += type == LUA_TNIL ? "|nil" : lua_toboolean(L, i) ? "|true" : "|false";
    } else if (type == LUA_TSTRING) {
      key += "|" + host::text_in_key(check_text(L, i, "a compiled function's argument"));
    } else {
      raise_invalid(
          L,
          fmt::format("a compiled function's argument {} is {} ({})", i - first + 1, describe(L, i),
                      script_position(L)),
          "pass tensors, numbers, strings and booleans; let the function use models and optimizers as upvalues");
    }
  }
  const auto on = inputs.empty() ? h.graph ? h.graph : default_graph(L) : inputs[0].graph().shared_from_this();
  if (h.graph != on) {
    h.graph = on;
    auto made = std::make_unique<Compiled>(on, h.check, h.recompute, h.epilogues, h.accumulate);
    if (h.on_device) made->succeed(*h.on_device);
    h.on_device = std::move(made);
  }
  auto next = h.on_device->begin(inputs, key);
  if (!next) return at_line(L, std::move(next).error());
  if (*next == Compiled::Next::replayed) {
    lua_settop(L, 0);
    push(L, false);
    return 1 + push_all(L, h.on_device->outputs());
  }
  h.traced = state.tracing();
  if (Fiber* f = LuaHost::of(L).current()) h.suspensions = f->suspension;
  std::size_t at = 0;
  lua_pushboolean(L, 1);
  luaL_checkstack(L, last + 4, "a compiled function's arguments");
  for (int i = first; i <= last; ++i) {
    if (test_tensor(L, i)) push_tensor(L, h.on_device->arguments()[at++]);
    else lua_pushvalue(L, i);
  }
  return 1 + last - first + 1;
}

// finish(handle, results...) -> the results as output tensors of the trace
Result<int> finish(lua_State* L) {
  auto& h = check_object<CompiledHandle>(L, 1, "compiled function");
  if (!h.on_device) return make_error(ErrorKind::state, "a call of a compiled function is finished that has not begun");
  Fiber* f = LuaHost::of(L).current();
  if (h.traced && f && f->suspension != h.suspensions) {
    h.on_device->abandon();
    return at_line(
        L, make_error(ErrorKind::state, "a compiled function waited for something while its operations were recorded",
                      "wait outside of the function: when its recorded operations run again, nothing waits"));
  }
  std::vector<Tensor> results;
  for (int i = 2; i <= lua_gettop(L); ++i) {
    const Tensor* const t = test_tensor(L, i);
    if (!t || !*t) h.on_device->abandon();  // then an error is raised
    if (!t) {
      raise_invalid(L, fmt::format("a compiled function returns tensors; result {} is {}", i - 1, describe(L, i)),
                    "return only tensors: any other value would always be the one of the first call");
    }
    results.push_back(check_tensor(L, i, "a compiled function's result"));
  }
  // An untraced call has only recorded operations, which run now. Unused tensors would hold memory, so collect them.
  if (!h.traced) lua_gc(L, LUA_GCCOLLECT, 0);
  auto outputs = h.on_device->end(results);
  if (!outputs) return at_line(L, std::move(outputs).error());
  lua_settop(L, 0);
  return push_all(L, *outputs);
}

int abandon(lua_State* L) {
  if (auto& on = check_object<CompiledHandle>(L, 1, "compiled function").on_device) on->abandon();
  return 0;
}

int info(lua_State* L) {
  const auto& on = check_object<CompiledHandle>(L, 1, "compiled function").on_device;
  const auto i = on ? on->info() : tensor::PlanInfo{};
  lua_newtable(L);
  set_field(L, "recorded", static_cast<double>(i.recorded));
  set_field(L, "calls", static_cast<double>(i.calls));
  set_field(L, "arena_bytes", static_cast<double>(i.arena_bytes));
  set_field(L, "temporary_bytes", static_cast<double>(i.temporary_bytes));
  if (!i.one_by_one.empty()) set_field(L, "one_by_one", i.one_by_one);
  if (const auto& graph = check_object<CompiledHandle>(L, 1, "compiled function").graph) {
    push_fallbacks(L, *graph->device());
    lua_setfield(L, -2, "fallbacks");
  }
  push_costs(L, i.costs);
  lua_setfield(L, -2, "operations");
  const auto retraces = on ? on->retraces() : tensor::Retraces{};
  set_field(L, "variants", static_cast<double>(on ? on->variants() : 0));
  set_field(L, "retraced", static_cast<double>(retraces.count));
  set_field(L, "dropped", static_cast<double>(retraces.dropped));
  lua_newtable(L);
  for (int n = 0; const auto& one : retraces.latest) {
    lua_newtable(L);
    set_field(L, "call", static_cast<double>(one.call));
    set_field(L, "cause", one.cause);
    lua_rawseti(L, -2, ++n);
  }
  lua_setfield(L, -2, "retraces");
  return 1;
}

// warning(handle, the function) -> a warning about this compiled function, given only once, or nil
int warning(lua_State* L) {
  const auto& on = check_object<CompiledHandle>(L, 1, "compiled function").on_device;
  const auto line = on ? on->take_warning() : std::string();
  if (line.empty()) return 0;
  lua_Debug where{};
  lua_pushvalue(L, 2);
  lua_getinfo(L, ">S", &where);
  const auto text = fmt::format("the function at {}:{} was {}", where.short_src, where.linedefined, line);
  if (LuaHost& host = LuaHost::of(L); host.has_run() && host.control().hooks().event)
    host.control().hooks().event(Value().set("event", "warning").set("what", "rille.compile").set("message", text));
  push(L, text);
  return 1;
}

}  // namespace

void add_compile_natives(lua_State* L) {
  define_class<CompiledHandle>(L, {.name = "CompiledFunction"});
  set_functions(L, {{"compiled", bind<compiled>},
                    {"compiled_begin", bind<begin>},
                    {"compiled_finish", bind<finish>},
                    {"compiled_abandon", bind<abandon>},
                    {"compiled_info", bind<info>},
                    {"compiled_warning", bind<warning>}});
}

}  // namespace rille::lua
