// C functions for stdlib/device: time and cost of the operations between start and stop, and checks for NaN.
#include "bindings/lua/compute/fallbacks.hpp"
#include "runtime/compute/device/executor.hpp"

namespace rille::lua {

void push_costs(lua_State* L, const std::vector<tensor::ProfileRow>& rows) {
  lua_createtable(L, static_cast<int>(rows.size()), 0);
  int n = 0;
  for (const auto& row : rows) {
    lua_newtable(L);
    set_field(L, "name", row.name);
    set_field(L, "shape", row.shape);
    set_field(L, "calls", static_cast<double>(row.calls));
    set_field(L, "bytes", row.cost.bytes);
    set_field(L, "flops", row.cost.flops);
    if (row.ns) set_field(L, "ms", static_cast<double>(row.ns) * 1e-6);
    lua_rawseti(L, -2, ++n);
  }
}

namespace {

// Pushes the fallbacks of `device` that stdlib code has noted: a table "library/operation" -> row, or nil.
void push_noted(lua_State* L, const std::string& device) {
  lua_getfield(L, LUA_REGISTRYINDEX, "rille.noted_fallbacks");
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, "rille.noted_fallbacks");
  }
  lua_getfield(L, -1, device.c_str());
  if (lua_isnil(L, -1)) {
    lua_pop(L, 1);
    lua_newtable(L);
    lua_pushvalue(L, -1);
    lua_setfield(L, -3, device.c_str());
  }
  lua_remove(L, -2);
}

void push_fallback(lua_State* L, const device::Fallback& one) {
  lua_newtable(L);
  set_field(L, "library", one.library);
  set_field(L, "operation", one.operation);
  set_field(L, "why", one.why);
  set_field(L, "calls", static_cast<double>(one.calls));
}

}  // namespace

void push_fallbacks(lua_State* L, device::Device& device) {
  const auto* executor = device.executor();
  int n = 0;
  lua_newtable(L);
  if (executor) {
    for (const auto& one : executor->fallbacks()) {
      push_fallback(L, one);
      lua_rawseti(L, -2, ++n);
    }
  }
  push_noted(L, device.name());
  for (lua_pushnil(L); lua_next(L, -2);) lua_rawseti(L, -4, ++n);
  lua_pop(L, 1);
  if (n > 0) return;
  lua_pop(L, 1);
  lua_pushnil(L);
}

namespace {

void push_report(lua_State* L, const tensor::ProfileReport& report) {
  lua_newtable(L);
  push_costs(L, report.rows);
  lua_setfield(L, -2, "rows");
  set_field(L, "timed_by", report.timed_by);
  if (!report.why.empty()) set_field(L, "why", report.why);
  if (report.timed_by != "cupti") return;
  lua_createtable(L, static_cast<int>(report.kernels.size()), 0);
  int n = 0;
  for (const auto& kernel : report.kernels) {
    lua_newtable(L);
    set_field(L, "name", kernel.name);
    set_field(L, "operations", kernel.operations);
    set_field(L, "calls", static_cast<double>(kernel.calls));
    set_field(L, "ms", static_cast<double>(kernel.ns) * 1e-6);
    if (kernel.cost.bytes > 0) set_field(L, "bytes", kernel.cost.bytes);
    if (kernel.cost.flops > 0) set_field(L, "flops", kernel.cost.flops);
    lua_rawseti(L, -2, ++n);
  }
  lua_setfield(L, -2, "kernels");
}

int start(lua_State* L) {  // start(device): starts recording the times of operations
  device_graph(L, 1, "profile").profile_start();
  return 0;
}

// stop(device) -> { rows, kernels, timed_by, why, fallbacks }. Waits for all operations recorded before the call.
int stop(lua_State* L) {
  Graph& on = device_graph(L, 1, "profile");
  Completion done = begin_await(L);
  on.profile_stop([done, device = on.device()](Result<tensor::ProfileReport> report) {
    if (!report) return done.post_fail(std::move(report).error());
    auto shared = std::make_shared<tensor::ProfileReport>(std::move(*report));
    done.post_finish([shared, device](lua_State* l) {
      push_report(l, *shared);
      push_fallbacks(l, *device);
      lua_setfield(l, -2, "fallbacks");
      return 1;
    });
  });
  return end_await(L);
}

// fallbacks(device) -> a list of { library, operation, why, calls }, or nil if no library declined an operation
int fallbacks(lua_State* L) {
  push_fallbacks(L, *device_graph(L, 1, "fallbacks").device());
  return 1;
}

// note_fallback(device, library, operation, why): notes a fallback that Lua code chose and the executor never sees.
int note_fallback(lua_State* L) {
  device::Fallback one;
  one.library = check_text(L, 2, "library");
  one.operation = check_text(L, 3, "operation");
  one.why = check_text(L, 4, "reason");
  const std::string key = one.library + "/" + one.operation;
  push_noted(L, device_graph(L, 1, "note_fallback").device()->name());
  lua_getfield(L, -1, key.c_str());
  one.calls = 1;
  if (lua_istable(L, -1)) {
    lua_getfield(L, -1, "calls");
    one.calls = static_cast<std::int64_t>(lua_tonumber(L, -1)) + 1;
    lua_pop(L, 1);
  }
  push_fallback(L, one);
  lua_setfield(L, -3, key.c_str());
  return 0;
}

// check_numbers(device, on) -> the previous setting. on: every operation's result is checked for NaN.
int check(lua_State* L) {
  Graph& on = device_graph(L, 1, "check_numbers");
  const bool before = on.checks_numbers();
  on.set_check_numbers(lua_toboolean(L, 2) != 0);
  push(L, before);
  return 1;
}

}  // namespace

void add_profile_natives(lua_State* L) {
  set_functions(L, {{"profile_start", bind<start>},
                    {"check_numbers", bind<check>},
                    {"fallbacks", bind<fallbacks>},
                    {"note_fallback", bind<note_fallback>}});
  set_async(L, "profile_stop", bind<stop>);
}

}  // namespace rille::lua
