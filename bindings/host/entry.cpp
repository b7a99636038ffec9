// Calls from the host program into a Lua state, and their limits.
#include "bindings/host/errors.hpp"
#include "bindings/host/host.hpp"
#include "bindings/host/keys.hpp"
#include "runtime/core/base/time.hpp"

namespace rille::host {

void LuaHost::spawned(FiberId child) {
  ++spawned_, ++options_.spent->fibers;
  if (current_ && current_->budget) set_budget(child, current_->budget);
}

std::shared_ptr<Budget> LuaHost::make_budget() {
  auto made = std::make_shared<Budget>();
  if (options_.limits.timed())
    made->clock = std::make_unique<LimitClock>(options_.limits, made->spent, [this] { bell_->ring(); });
  renew(*made);
  return made;
}

void LuaHost::renew(Budget& b) {
  // Operations that the last call started on devices may still run; they count for that call.
  if (!b.work || b.work.use_count() > 1 || b.work->ends() > 0) {
    b.work = make_work();
    b.spent = std::make_shared<Spending>();
  } else {
    b.spent->renew();
  }
  b.over.reset();
  if (b.clock) b.clock->renew(b.spent);
  if (options_.limits.wall_ms > 0)
    b.spent->wall_due_ns = system_clock().monotonic_ns() + options_.limits.wall_ms * 1'000'000;
}

void LuaHost::set_budget(FiberId fiber, std::shared_ptr<Budget> of) { unborn_.insert_or_assign(fiber, std::move(of)); }

void LuaHost::call_is_over(Budget& b, Error why) {
  if (b.over) return;
  b.over = why;
  if (b.clock) b.clock->begin_grace();
  cancel_call(b, std::move(why));
}

void LuaHost::cancel_call(Budget& b, Error why) {
  if (b.work) b.work->end(why);
  run_fibers_->cancel_fiber(b.root, std::move(why));
}

void LuaHost::end_entry(Error why) {
  if (!budget_ || budget_->root || over_) return;
  over_ = std::move(why);
  arm(1);
}

WithBudget::WithBudget(LuaHost& host, Budget* budget) : host_(host), budget_(budget) {
  if (!budget_) return;
  swap();
  outer_ = std::exchange(host_.budget_, budget_);
  tell();
}

WithBudget::~WithBudget() {
  if (!budget_) return;
  swap();
  host_.budget_ = outer_;
  tell();
}

void WithBudget::swap() {
  if (host_.over_ || budget_->over) std::swap(host_.over_, budget_->over);
  std::swap(host_.clock_, budget_->clock);
  std::swap(host_.options_.spent, budget_->spent);
}

Entry::Entry(LuaHost& host, Budget* budget) : host_(host), outermost_(!host.current_ || host.gave_way_) {
  if (!outermost_) return;
  here_.emplace(*host.bell_);
  limits_.emplace(host, budget);
  Fiber& f = host.entered_;
  if (!f.id) {
    f.id = 1;
    f.cannot_wait = true;
    f.random.reseed(host.run_fibers_->seed(1));
  }
  outer_ = std::exchange(host.current_, &f);
  if (outer_) {  // its code gave way: the hook and the script's coroutines must not mistake this call's code for it
    outer_armed_ = std::exchange(host.armed_, 0);
    host.set_gives_way(false);
    host.set_hook();
  }
  host.raised_.message.clear();
  const bool exceeded = host.clock_ && host.clock_->begin();
  if (exceeded || host.over_) host.arm(1);
}

Entry::~Entry() {
  if (!outermost_) return;
  if (host_.clock_) host_.clock_->end(false);
  if (host_.over_) host_.arm(0);
  host_.current_ = outer_;
  if (!outer_) return;
  host_.armed_ = outer_armed_;
  host_.set_gives_way(true);
  const Bell::Quiet quiet(*host_.bell_);
  lua_sethook(host_.lua(), nullptr, 0, 0);  // go_on() sets the hook again
}

Error Entry::error(lua_State* from) {
  lua_State* L = host_.lua();
  std::optional<Error> found = over();
  LuaState::Reserve reserve(L);
  if (from != L) lua_xmove(from, L, 1);
  Error e = caught_error(L, -1);
  lua_pop(L, 1);
  get_registry(L, &key_data);
  lua_rawgeti(L, -1, static_cast<int>(host_.current_->id));
  if (lua_istable(L, -1)) {  // the trace belongs to this error only, and the next error may have the same text
    lua_pushnil(L);
    lua_setfield(L, -2, "trace_error");
  }
  lua_pop(L, 2);
  if (!found) return e;
  if (found->traceback.empty()) found->traceback = e.traceback;
  return std::move(*found);
}

}  // namespace rille::host
