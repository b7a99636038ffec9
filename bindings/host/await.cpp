#include "bindings/host/await.hpp"

#include <fmt/format.h>

#include <cstring>

#include "bindings/host/host.hpp"
#include "bindings/host/keys.hpp"
#include "runtime/workflow/engine/run.hpp"

namespace rille::host {

// Lets await.cpp call private members of LuaHost.
struct AwaitAccess {
  static void resume(LuaHost& host, Fiber& fiber, int values) { host.resume(fiber, values); }
  static void resume_later(LuaHost& host, FiberId id, int values) { host.resume_later(id, values); }
  static bool give_up(LuaHost& host, Fiber& fiber) { return host.give_up(fiber); }
  static void refused(LuaHost& host, Fiber& fiber) { host.refused(fiber); }
};

namespace {

// The name of the C function that keeps this coroutine from being suspended, such as "gsub".
std::string blocking_frame(lua_State* L) {
  lua_Debug ar;
  for (int level = 1; lua_getstack(L, level, &ar); ++level) {
    lua_getinfo(L, "Sn", &ar);
    if (ar.what[0] == 'C') return ar.name ? fmt::format("'{}'", ar.name) : "a C function";
  }
  return "a C function";
}

// Whether this coroutine runs a call of the host program (bindings/c/bridge.cpp).
bool is_entry(lua_State* co) {
  if (!lua_checkstack(co, 4)) return false;
  get_registry(co, &key_parents);
  lua_pushthread(co);
  lua_rawget(co, -2);
  const bool entry = lua_isboolean(co, -1) && lua_toboolean(co, -1);
  lua_pop(co, 2);
  return entry;
}

Error cannot_wait() {
  return make_error(ErrorKind::state,
                    "this would have to wait, but the host program called the function with rille_script_call, which "
                    "cannot wait",
                    "the host program calls such functions with rille_script_begin");
}

Error no_fiber() {
  return make_error(ErrorKind::state, "this would have to wait, but no fiber is running", "call it inside a run");
}

}  // namespace

Result<> may_wait(lua_State* L) {
  const Fiber* fiber = LuaHost::of(L).current();
  if (!fiber) return no_fiber();
  for (lua_State* co = L; co; co = parent_coroutine(co)) {
    if (!lua_isyieldable(co) && is_entry(co)) return cannot_wait();
    if (!lua_isyieldable(co))
      return make_error(ErrorKind::state,
                        fmt::format("this would have to wait, but it was called through {}, which cannot be suspended",
                                    blocking_frame(co)),
                        "do the waiting outside of that function: collect the values first");
    if (co == fiber->L) return {};
  }
  return make_error(ErrorKind::state, "this would have to wait, but it runs in a coroutine that belongs to no fiber",
                    "call it in the run's script or in rille.spawn");
}

void check_cancelled(lua_State* L) {
  LuaHost& host = LuaHost::of(L);
  Fiber* fiber = host.current();
  const Error* why = fiber && host.has_run() ? host.fibers().cancelled(fiber->id) : nullptr;
  if (!why) return;
  AwaitAccess::refused(host, *fiber);
  raise(L, *why);
}

int unpack_result(lua_State* L) {
  if (lua_toboolean(L, 1)) {
    lua_remove(L, 1);
    return lua_gettop(L);
  }
  lua_settop(L, 2);
  if (is_error(L, 2)) {  // the error was made outside of the fiber, so add the fiber's traceback
    lua_getfield(L, 2, "traceback");
    std::string known = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "";
    if (known.empty() || ends_in_call(known)) {
      push(L, known + (known.empty() ? "" : "\n") + traceback(L, 0, false));
      lua_setfield(L, 2, "traceback");
    }
    lua_settop(L, 2);
  }
  return lua_error(L);
}

lua_State* parent_coroutine(lua_State* co) {
  if (!lua_checkstack(co, 4)) return nullptr;
  get_registry(co, &key_parents);
  lua_pushthread(co);
  lua_rawget(co, -2);
  lua_State* parent = lua_tothread(co, -1);
  lua_pop(co, 2);
  return parent;
}

void hold_coroutine(lua_State* co, const Fiber& fiber, int by) {
  if (co == fiber.L) return;
  luaL_checkstack(co, 4, "scope");
  get_registry(co, &key_held);
  lua_pushthread(co);
  lua_pushvalue(co, -1);
  lua_rawget(co, -3);
  const int count = static_cast<int>(lua_tointeger(co, -1)) + by;
  lua_pop(co, 1);
  if (count > 0) lua_pushinteger(co, count);
  else lua_pushnil(co);
  lua_rawset(co, -3);
  lua_pop(co, 1);
}

Completion begin_await(lua_State* L, Waits waits) {
  LuaHost& host = LuaHost::of(L);
  Fiber* fiber = host.current();
  value_or_raise(L, may_wait(L));
  if (waits != Waits::cleanup) check_cancelled(L);
  ++fiber->suspension;
  fiber->starting = true;
  fiber->ready = -1;
  fiber->waiting = true;
  fiber->engine_wait = waits != Waits::here;
  fiber->awaiting = L;
  return host.completion(*fiber);
}

int end_await(lua_State* L) {
  Fiber& fiber = *LuaHost::of(L).current();
  fiber.starting = false;
  if (fiber.ready >= 0) {
    fiber.waiting = false;
    return fiber.ready;
  }
  if (fiber.plain.runs) LuaHost::of(L).run().plain_waits(fiber.id);
  return suspend(L);
}

int suspend(lua_State* L) {
  lua_pushlightuserdata(L, const_cast<char*>(&key_await));
  return lua_yield(L, 1);
}

// Calls `fn` to push the results, passes (true, values...) or (false, error) to the fiber, and resumes it.
void Completion::finish_with(int (*fn)(lua_State*, void*), void* context) const {
  auto host_pointer = host_.lock();
  if (!host_pointer || !*host_pointer) return;
  LuaHost& host = **host_pointer;
  Fiber* fiber = host.find(fiber_);
  if (!fiber || !fiber->waiting || fiber->suspension != suspension_ || fiber->ready >= 0) return;
  if (!fiber->starting && AwaitAccess::give_up(host, *fiber)) return;
  // While the binding still starts the work, push the results on the awaiting coroutine's stack. Later use the main
  // stack, because a suspended coroutine cannot run a protected call.
  lua_State* L = fiber->starting ? fiber->awaiting : host.lua();
  int top = lua_gettop(L);
  struct Call {
    int (*fn)(lua_State*, void*);
    void* context;
  } call_it{fn, context};
  get_registry(L, &key_finish);
  lua_pushlightuserdata(L, &call_it);
  if (lua_pcall(L, 1, LUA_MULTRET, 0) != 0) {
    lua_pushboolean(L, 0);
    lua_insert(L, -2);
  }
  int values = lua_gettop(L) - top;
  if (fiber->starting) {
    fiber->ready = values;
    return;
  }
  if (!lua_checkstack(fiber->L, values + 1)) {
    lua_settop(L, top);
    lua_pushboolean(L, 0);
    lua_pushliteral(L, "not enough memory");
    values = 2;
  }
  lua_xmove(L, fiber->L, values);
  fiber->waiting = false;
  if (!host.current()) return AwaitAccess::resume(host, *fiber, values);
  // The code of another fiber is running and must continue first, so resume this fiber in the next turn of the loop.
  AwaitAccess::resume_later(host, fiber_, values);
}

void Completion::fail(const Error& error) const {
  finish_with(
      [](lua_State* L, void* e) -> int {
        lua_pushboolean(L, 0);
        push_error(L, *static_cast<const Error*>(e));
        return -1;
      },
      const_cast<Error*>(&error));
}

void Completion::post_finish(Push push) const {
  loop_->post_from_thread([self = *this, push = std::move(push)] { self.finish(push); });
}

void Completion::post_fail(Error error) const {
  loop_->post_from_thread([self = *this, error = std::move(error)] { self.fail(error); });
}

namespace detail {
void begin(lua_State* L, Driver driver) {
  auto handle = std::coroutine_handle<Driver::promise_type>::from_promise(*driver.promise);
  driver.promise->handle = handle;
  LuaHost::of(L).drivers().insert(*driver.promise);
  handle.resume();
}

// Runs inside lua_pcall, with a Call* as its argument; returns true and the values that Call::fn pushes.
int finish_call(lua_State* L) {
  struct Call {
    int (*fn)(lua_State*, void*);
    void* context;
  };
  auto* call = static_cast<Call*>(lua_touserdata(L, 1));
  lua_settop(L, 0);
  int n = call->fn(L, call->context);
  if (n < 0) return 2;  // fn failed and has pushed (false, error)
  lua_pushboolean(L, 1);
  lua_insert(L, -(n + 1));
  return n + 1;
}
}  // namespace detail

void wrap_async(lua_State* L) {
  get_registry(L, &key_shim);
  lua_insert(L, -2);
  lua_pushcfunction(L, unpack_result);
  lua_call(L, 2, 1);
}

void set_async(lua_State* L, const char* name, lua_CFunction function) {
  lua_pushcfunction(L, function);
  wrap_async(L);
  lua_setfield(L, -2, name);
}

}  // namespace rille::host
