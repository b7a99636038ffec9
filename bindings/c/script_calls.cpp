// Calls that may wait, and freeing scripts.
#include <fmt/format.h>

#include "bindings/c/script.hpp"
#include "bindings/host/errors.hpp"
#include "runtime/workflow/engine/run.hpp"

namespace rille::capi {

using namespace rille::host;

namespace {

constexpr std::size_t calls_max = 10'000;
constexpr std::int64_t cleanup_of_freed_ms = 200;  // how long cleanup may wait after the script was freed

// Tells the host program when the call's fiber has ended.
Execution watch(rille_script* s, std::uint64_t call, FiberId fiber) {
  Result<> how = co_await s->parts->run->join(1, fiber);
  s->finish(call, std::move(how));
  s->runtime->loop->post([self = s->shared_from_this(), call] { self->watches.erase(call); });
}

void watch_wall(rille_script& s, ActiveCall& call) {
  const std::int64_t wall_ms = s.parts->options.wall_ms;
  if (wall_ms <= 0) return;
  Loop& loop = *s.runtime->loop;
  call.wall = std::make_unique<Timer>(
      loop, wall_ms, [&s, &call, wall_ms] { s.host().call_is_over(*call.budget, wall_error(wall_ms)); });
  call.cleanup = std::make_unique<Timer>(loop, wall_ms + cleanup_wait_ms(wall_ms), [&s, number = call.number, wall_ms] {
    s.runtime->loop->post(
        [self = s.shared_from_this(), number, wall_ms] { self->finish(number, wall_error(wall_ms)); });
  });
}

// The body of the fiber: a Lua function that holds the call's arguments.
Result<FunctionRef> make_body(rille_script& s, int ref, std::uint64_t number, const rille_value* arguments,
                              std::size_t count) {
  FunctionRef body = 0;
  RILLE_CHECK(protect(s.host().lua(), [&](lua_State* L) {
    luaL_checkstack(L, static_cast<int>(count) + 8, "the arguments of a call");
    lua_rawgeti(L, LUA_REGISTRYINDEX, s.begin);
    lua_pushnumber(L, static_cast<double>(number));
    lua_rawgeti(L, LUA_REGISTRYINDEX, ref);
    for (std::size_t i = 0; i < count; ++i) s.bridge().push(L, arguments[i], ValueName{"argument", i + 1, {}});
    lua_call(L, static_cast<int>(count) + 2, 1);
    body = s.host().keep_function(L, -1);
  }));
  return body;
}

Result<> begin_call(rille_script& s, int ref, const rille_value* arguments, std::size_t count,
                    std::unique_ptr<ActiveCall> call, std::uint64_t* out) {
  rille_runtime& rt = *s.runtime;
  if (rt.closed) return make_error(ErrorKind::state, "this runtime has been shut down", "create another");
  if (s.ended || s.freed) return make_error(ErrorKind::state, "the script can no longer run fibers", "load it again");
  if (s.calls.size() >= calls_max)
    return make_error(ErrorKind::state, fmt::format("{} calls are active, which is the limit", calls_max),
                      "wait for some");
  if (count > arguments_max)
    return make_error(ErrorKind::invalid, fmt::format("a call has at most {} arguments", arguments_max));
  call->number = s.calls_begun + 1;
  RILLE_TRY(FunctionRef body, make_body(s, ref, call->number, arguments, count));
  call->budget = s.host().make_budget();
  RILLE_TRY(call->fiber, s.parts->run->spawn(1, "call", body, Value()));
  ++s.calls_begun;
  call->budget->root = call->fiber;
  s.host().set_budget(call->fiber, call->budget);
  watch_wall(s, *call);
  if (out) *out = call->number;
  const std::uint64_t number = call->number;
  const FiberId fiber = call->fiber;
  s.calls.emplace(number, std::move(call));
  ++rt.pending;
  s.watches.emplace(number, watch(&s, number, fiber));
  return {};
}

// The results or the error of the call's function.
Result<std::vector<rille_value>> take_answer(rille_script& s, std::uint64_t number, Loan& loan) {
  std::vector<rille_value> values;
  std::optional<Error> failure;
  bool found = false;
  RILLE_CHECK(protect(s.host().lua(), [&](lua_State* L) {
    lua_rawgeti(L, LUA_REGISTRYINDEX, s.answers);
    lua_rawgeti(L, 1, static_cast<int>(number));
    if (!lua_istable(L, 2)) return;
    found = true;
    lua_pushnil(L);
    lua_rawseti(L, 1, static_cast<int>(number));
    // The answer anchors the values that the loan lends.
    lua_newtable(L);
    lua_pushvalue(L, 2);
    lua_rawseti(L, -2, 1);
    loan.anchor = luaL_ref(L, LUA_REGISTRYINDEX);
    loan.anchored = 1;
    lua_getfield(L, 2, "ok");
    const bool fine = lua_toboolean(L, -1);
    lua_getfield(L, 2, "n");
    const auto n = static_cast<int>(lua_tonumber(L, -1));
    for (int i = 1; i <= (fine ? n : 1); ++i) {
      lua_settop(L, 2);
      lua_rawgeti(L, 2, i);
      if (fine)
        values.push_back(s.bridge().lend_raising(L, 3, loan, ValueName{"result", static_cast<std::size_t>(i), {}}));
      else failure = to_error(L, 3);
    }
  }));
  if (failure) return std::move(*failure);
  if (!found) return make_error(ErrorKind::internal, "a call ended without a result", "this is a bug of Rille");
  return values;
}

}  // namespace
}  // namespace rille::capi

using namespace rille;
using namespace rille::capi;

void rille_script::finish(std::uint64_t number, Result<> how) {
  auto node = calls.extract(number);
  if (!node) return;
  auto keep = shared_from_this();
  std::unique_ptr<ActiveCall> call = std::move(node.mapped());
  --runtime->pending;
  call->wall.reset();
  call->cleanup.reset();
  std::unique_ptr<Loan> loan = bridge().new_loan();
  Result<std::vector<rille_value>> values = take_answer(*this, number, *loan);
  if (!how) values = std::move(how).error();
  if (call->budget->over) {  // the call fails with this error even if the script caught it
    Error over = *call->budget->over;
    if (over.traceback.empty() && !values) over.traceback = values.error().traceback;
    values = std::move(over);
  }
  if (call->done && values) call->done(nullptr, values->data(), values->size(), call->payload);
  if (call->done && !values) {
    const std::unique_ptr<rille_error> error = hold(std::move(values).error());
    call->done(error.get(), nullptr, 0, call->payload);
  }
  bridge().end(std::move(loan));
}

void rille_script::interrupt(const Error& why) {
  if (!parts->host) return;
  host().end_entry(why);
  for (const auto& [number, call] : calls) host().cancel_call(*call->budget, why);
}

void rille_script::free() {
  if (std::exchange(freed, true)) return;
  if (!parts->host) return close();  // rille_shutdown has ended it
  bridge().invalidate();
  const bool idle = calls.empty() && watches.empty() && !runtime->turning && bridge().depth() == 0 && !host().current();
  if (idle || !parts->run) return close();
  ends_later = true;
  ++runtime->pending;
  runtime->loop->post([self = shared_from_this()] {
    if (!self->parts->host) return;
    if (self->ended) return self->close();
    const Error why = make_error(ErrorKind::cancelled, "the host program has freed the script");
    self->parts->run->cancel(why);
    self->cleanup = std::make_unique<Timer>(*self->runtime->loop, cleanup_of_freed_ms,
                                            [s = self.get(), why] { s->parts->run->stop_cleanup(why); });
  });
}

void rille_script::close() {
  auto keep = shared_from_this();
  cleanup.reset();
  watches.clear();
  execution = Execution();
  parts->close();
  runtime->pending -= static_cast<int>(std::exchange(calls, {}).size()) + (std::exchange(ends_later, false) ? 1 : 0);
  if (freed) std::erase_if(runtime->scripts, [this](const auto& s) { return s.get() == this; });
}

rille_error* rille_script_begin(rille_runtime* rt, rille_script_function function, const rille_value* arguments,
                                size_t argument_count, rille_values_function done, void* payload, uint64_t* call) {
  if (call) *call = 0;
  return guarded([&]() -> Result<> {
    RILLE_CHECK(check_call(rt));
    if (!arguments && argument_count) return null_argument("rille_script_begin", "arguments");
    RILLE_TRY(ScriptFunction * f, rt->holdings->function(function));
    rille_script* script = f->bridge->script;
    if (!script)
      return make_error(ErrorKind::state, "a function of a run can only be called at once, not in a fiber of its own",
                        "use rille_script_call, or keep the script loaded: rille_script_load");
    auto made = std::make_unique<ActiveCall>();
    made->done = done;
    made->payload = payload;
    return begin_call(*script, f->ref, arguments, argument_count, std::move(made), call);
  });
}

rille_error* rille_script_cancel(rille_script* script, uint64_t call, const char* reason) {
  return guarded([&]() -> Result<> {
    if (!script) return null_argument("rille_script_cancel", "script");
    RILLE_CHECK(check_call(script->runtime));
    auto it = script->calls.find(call);
    if (it == script->calls.end()) return {};
    script->host().cancel_call(
        *it->second->budget,
        make_error(ErrorKind::cancelled, reason && *reason ? reason : "cancelled by the host program"));
    return {};
  });
}
