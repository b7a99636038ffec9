// Stops running Lua. For good (a cancel, an interrupt, a time limit): the debug hook raises an error. For the rest of a
// turn: the hook suspends the code. Other threads set flags and ring the bell; everything else happens on the loop's
// thread.
#include <algorithm>

#include "bindings/host/host.hpp"
#include "bindings/host/keys.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/workflow/engine/run.hpp"

namespace rille::host {

namespace {

// Instructions that a cancelled fiber may run before it is interrupted between suspension points: enough for its
// cleanup, but they end a loop that swallows every error.
constexpr int grace_instructions = 2'000'000;
// Instructions charged for a turn that ends: the hook cannot tell how many of them have run.
constexpr int grace_turn_instructions = grace_instructions / 20;
// Waits that a cancelled fiber may attempt. A fiber that attempts more swallows the error, and each attempt may be
// expensive.
constexpr int refused_waits_max = 100;
// Number of checks in C functions that count as grace_instructions.
constexpr int grace_checks = 64;
// Instructions until code that cannot give way is asked again, and those that may run in a turn that is already over.
constexpr int way_instructions = 1000;
// The watchdog rings again, since the loop's thread may have replaced the hook in the meantime.
constexpr std::int64_t turn_rings_again_ns = 2'000'000;

}  // namespace

void LuaHost::refused(Fiber& fiber) {
  if (++fiber.refused > refused_waits_max) arm(1);
}

void LuaHost::arm_interrupt() noexcept {
  interrupt_.store(true);
  bell_->ring();
}

void LuaHost::look_later(std::int64_t ms) {
  if (ms < 0 || loop_.virtual_time()) return;
  if (!alarm_)
    alarm_ = std::make_unique<Watchdog::Watch>([this] {
      look_.store(true);
      bell_->ring();
      return Watchdog::never;
    });
  alarm_->set_sooner(system_clock().monotonic_ns() + ms * 1'000'000);
}

void LuaHost::left_scope() {
  if (!current_) return;
  if (over_) arm(1);
  else if (run_fibers_->cancelled(current_->id)) arm(grace_instructions);
}

// If a script catches the error, its run still ends with it: the run is cancelled for that reason.
void LuaHost::time_is_over(Error limit) {
  if (over_) return;
  over_ = std::move(limit);
  clock_->begin_grace();
  if (budget_) {
    if (budget_->root) cancel_call(*budget_, *over_);
    else if (budget_->work) budget_->work->end(*over_);
    return;
  }
  control_->cancel(*over_);
  if (current_) control_->cancel_now();
}

void LuaHost::arm(int count) {
  armed_ = count;
  set_hook();
}

void LuaHost::arm_resumed(const Fiber& f, bool exceeded) {
  if (exceeded || over_) return arm(1);
  if (!run_fibers_->cancelled(f.id)) return;
  // Handles a pending interrupt now; later it would end the grace period before the fiber's pcall has caught the
  // reason.
  if (interrupt_.exchange(false) && options_.on_interrupt) options_.on_interrupt();
  arm(grace_instructions);
}

void LuaHost::set_hook() {
  const int count = std::min(armed_ > 0 ? armed_ : way_never, std::max(1, way_left_));
  const Bell::Quiet quiet(*bell_);
  if (count < way_never) lua_sethook(lua(), &LuaHost::hook, LUA_MASKCOUNT, count);
  else lua_sethook(lua(), nullptr, 0, 0);
  // Requests that other threads made in the meantime have lost their hook.
  if (interrupt_.load() || look_.load() || turn_rang_.load()) lua_sethook(lua(), &LuaHost::hook, LUA_MASKCOUNT, 1);
}

bool LuaHost::hook_is_due() const {
  return armed_ == 1 || interrupt_.load() || look_.load() || (current_ && clock_ && clock_->due());
}

const Error* LuaHost::must_end() {
  if (interrupt_.exchange(false) && options_.on_interrupt) options_.on_interrupt();
  if (control_ && look_.exchange(false)) look_later(control_->look_at_clock());
  Fiber* f = current_;
  if (f && clock_ && !over_)
    if (std::optional<Error> limit = clock_->exceeded()) time_is_over(std::move(*limit));
  const Error* why = f ? run_fibers_->cancelled(f->id) : nullptr;
  if (!why && f && control_->cancel_waits()) {
    if (!over_ && !std::exchange(grace_given_, true)) {  // the code may be about to wait, where a cancel is better
      arm(grace_instructions);
      return nullptr;
    }
    control_->cancel_now();
    why = run_fibers_->cancelled(f->id);
  }
  if (!why && f && over_ && (always_interrupted() || (budget_ && !budget_->root))) why = &*over_;
  if (why) {
    arm(1);  // until the stack has unwound: a pcall in a loop catches a single error
    return why;
  }
  arm(f && clock_ && clock_->due() ? 1 : 0);
  return nullptr;
}

// Raises the same Lua value each time, because every pcall and coroutine that the reason passes through raises it
// again.
void LuaHost::raise_again(lua_State* L, const Error& why) {
  if (raised_.ref == LUA_NOREF || raised_.message != why.message) {
    {
      Error e = why;
      if (e.traceback.empty()) e.traceback = traceback(L, 0, false);
      push_error(L, e);
    }
    luaL_unref(L, LUA_REGISTRYINDEX, std::exchange(raised_.ref, LUA_NOREF));
    raised_.ref = luaL_ref(L, LUA_REGISTRYINDEX);
    raised_.message = why.message;
  }
  lua_rawgeti(L, LUA_REGISTRYINDEX, raised_.ref);
  lua_error(L);
  __builtin_unreachable();
}

// If the C function cannot give way, its caller does.
void LuaHost::check_hook(lua_State* L) {
  if (turn_rang_.exchange(false) || way_left_ != way_never) {
    way_left_ = 0;
    set_hook();
  }
  if (!hook_is_due() && (armed_ == 0 || ++checks_ < grace_checks)) return;
  checks_ = 0;
  if (const Error* why = must_end()) raise_again(L, *why);
}

// Whether the code must give way.
bool LuaHost::count_instructions(int count) {
  const bool rang = turn_rang_.exchange(false);
  if (armed_ > 1) armed_ = std::max(1, armed_ - (rang ? grace_turn_instructions : count));
  if (rang) way_left_ = 0;
  else if (way_left_ != way_never) way_left_ = std::max(0, way_left_ - count);
  if (way_left_ > 0) return false;
  way_left_ = way_instructions;  // instructions until the next attempt, if the code cannot give way here
  return true;
}

void LuaHost::hook(lua_State* L, lua_Debug* ar) {
  LuaHost& host = of(L);
  if (host.gives_way_) return;
  if (!host.paused_error_.empty()) {
    if (L != host.paused_in_) return;  // Rille's code passes on to it
    push(L, std::exchange(host.paused_error_, {}));
    lua_error(L);
  }
  if (host.count_instructions(lua_gethookcount(L)) && host.may_give_way(L)) {
    host.give_way();
    lua_yield(L, 0);  // leaves this function
  }
  if (!host.hook_is_due()) return host.set_hook();
  const Error* why = host.must_end();
  if (!why) return;
  lua_getinfo(L, "S", ar);
  // Do not interrupt the code that catches the reason: scopes, steps and the REPL's loop. Other modules are helpers of
  // the script.
  if (!host.always_interrupted())
    for (std::string_view catcher : {"=[rille]", "=[rille.flow]", "=[rille.repl]"})
      if (catcher == ar->source) return;
  host.raise_again(L, *why);
}

// --- giving way

// Sets the hook for the end of the turn, before Lua runs.
void LuaHost::watch_turn() {
  turn_rang_.store(false);
  const std::int64_t now = system_clock().monotonic_ns(), due = options_.turn->due_ns(now);
  if (due == Watchdog::never) return;
  if (due <= now) {
    way_left_ = way_instructions;
    return set_hook();
  }
  if (!turn_watch_)
    turn_watch_ = std::make_unique<Watchdog::Watch>([this] {
      turn_rang_.store(true);
      bell_->ring();
      return system_clock().monotonic_ns() + turn_rings_again_ns;
    });
  turn_watch_->set(due);
}

void LuaHost::turn_ends() {
  if (turn_watch_) turn_watch_->clear();
  way_left_ = way_never;
  turn_rang_.store(false);
}

bool LuaHost::may_give_way(lua_State* L) const {
  if (!current_ || current_->starting) return false;
  for (lua_State* co = L; co; co = parent_coroutine(co)) {
    if (!lua_isyieldable(co)) return false;
    if (co == current_->L) return true;
  }
  return false;
}

bool LuaHost::called_by_lua(lua_State* L) {
  lua_Debug ar;
  return lua_getstack(L, 1, &ar) && lua_getinfo(L, "S", &ar) && *ar.what != 'C';
}

// The hook then yields without values, from each coroutine of the script up to the fiber's own (see `pass` in the
// prelude).
void LuaHost::give_way() {
  if (current_->plain.runs) run_->plain_waits(current_->id);
  set_gives_way(true);
  const Bell::Quiet quiet(*bell_);
  lua_sethook(lua(), nullptr, 0, 0);  // go_on() sets the hook again
}

int LuaHost::give_way_in(lua_State* L, std::unique_ptr<PausedCall> rest) {
  luaL_where(L, 1);
  paused_where_ = lua_tostring(L, -1);
  paused_in_ = L;
  paused_by_lua_ = called_by_lua(L);
  paused_ = std::move(rest);
  give_way();
  return lua_yield(L, 0);
}

// Returns the number of results, which are then on the fiber's stack; -1: the function gives way again.
int LuaHost::go_on_paused(Fiber& f) {
  const std::int64_t began = system_clock().monotonic_ns(), due = options_.turn->due_ns(began);
  while (!paused_->go_on()) {
    if (hook_is_due() && must_end()) {  // the hook raises the reason
      paused_.reset();
      return 0;
    }
    if (system_clock().monotonic_ns() >= due) return -1;
  }
  const std::unique_ptr<PausedCall> rest = std::move(paused_);
  int n = 0;
  Result<> pushed = protect(lua(), [&](lua_State* L) {
    n = rest->finish(L);
    if (n <= 0) return;
    luaL_checkstack(f.L, n, "too many captures");
    lua_xmove(L, f.L, n);
  });
  if (pushed && n >= 0) return n;
  std::string error = pushed ? paused_where_ + rest->error() : pushed.error().message;
  if (!pushed && pushed.error().kind == ErrorKind::memory) error = "not enough memory";  // becomes that kind again
  auto keep = [&](lua_State* L) {
    get_registry(L, &key_failed);
    push(L, error);
    lua_rawseti(L, -2, 1);
  };
  if (!paused_by_lua_ && protect(lua(), keep)) return 0;
  paused_error_ = std::move(error);
  arm(1);
  return 0;
}

void LuaHost::set_gives_way(bool on) {
  gives_way_ = on;
  lua_State* L = lua();
  get_registry(L, &key_gives_way);
  lua_pushboolean(L, on);
  lua_rawseti(L, -2, 1);
  lua_pop(L, 1);
}

void LuaHost::go_on() {
  if (!std::exchange(gave_way_, false)) return;
  Fiber& f = *current_;
  const std::shared_ptr<Budget> of = f.budget;  // the fiber may end
  const WithBudget limits(*this, of.get());
  const bool exceeded = clock_ && clock_->begin();
  const bool cancel = armed_ == 0 && !cancel_recorded_ && control_->cancel_waits();
  if (exceeded || over_ || interrupt_.load() || look_.load() || cancel) arm(1);
  else set_hook();
  const int values = paused_ ? go_on_paused(f) : 0;
  if (values < 0) {
    if (clock_) clock_->end(true);
    gave_way_ = true;
    return options_.turn->later(self_);
  }
  set_gives_way(false);
  run_lua(f, values, nullptr);
  if (gave_way_) return;
  run_fibers_->release_fibers();
  if (!after_way_.empty()) after_way_later();
}

void LuaHost::after_way_later() {
  loop_.post([self = self_] {
    if (*self) (*self)->after_way();
  });
}

// Continues the fibers that became ready while another one had given way: until one of them gives way, or the turn is
// over.
void LuaHost::after_way() {
  const std::int64_t due = options_.turn->due_ns(system_clock().monotonic_ns());
  while (!gave_way_ && !after_way_.empty()) {
    const std::function<void()> wake = std::move(after_way_.front());
    after_way_.pop_front();
    wake();
    if (system_clock().monotonic_ns() >= due) break;
  }
  if (!gave_way_ && !after_way_.empty()) after_way_later();
}

}  // namespace rille::host
