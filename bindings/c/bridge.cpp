#include "bindings/c/bridge.hpp"

#include <fmt/format.h>

#include "bindings/c/call.hpp"
#include "bindings/host/keys.hpp"
#include "bindings/host/open.hpp"

namespace rille::capi {

using namespace rille::host;

namespace {
constexpr std::size_t fields_kept = 1000;  // a loan keeps room for this many fields for its next call
}  // namespace

namespace detail {

char key_protected;

int protected_body(lua_State* L) {
  const auto& what = *static_cast<const Protected*>(lua_touserdata(L, 1));
  std::optional<Error> failure;
  try {
    what.run(L, what.fn);
    return what.results;
  } catch (const std::exception& e) {  // never catch (...), which would swallow Lua's errors
    failure.emplace(error_from_exception(e));
  }
  raise(L, std::move(*failure));
}

Result<> run_protected(lua_State* L, int arguments, const Protected& what) {
  get_registry(L, &key_protected);
  lua_insert(L, -arguments - 1);
  lua_pushlightuserdata(L, const_cast<Protected*>(&what));
  lua_insert(L, -arguments - 1);
  if (lua_pcall(L, arguments + 1, what.results, 0) == 0) return {};
  // The error is converted in the state's main coroutine, which may use memory beyond the limit.
  Error e;
  lua_State* main = LuaHost::of(L).lua();
  if (main != L) lua_xmove(L, main, 1);
  {
    LuaState::Reserve reserve(main);
    e = to_error(main, -1);
  }
  lua_pop(main, 1);
  return e;
}

}  // namespace detail

Bridge::~Bridge() { close(); }

Result<> Bridge::open() {
  return protect(host_.lua(), [](lua_State* L) {
    lua_pushcfunction(L, detail::protected_body);
    set_registry(L, &detail::key_protected);
  });
}

void Bridge::invalidate() {
  holdings().functions.each([this](ScriptFunction& f) {
    if (f.bridge == this) f.bridge = nullptr;
  });
}

void Bridge::close() {
  if (std::exchange(closed_, true)) return;
  invalidate();
  for (auto& f : frames_) end(f->loan);
  frames_.clear();
}

std::unique_ptr<Loan> Bridge::new_loan() {
  if (spare_.empty()) return std::make_unique<Loan>(host_.options().memory);
  std::unique_ptr<Loan> loan = std::move(spare_.back());
  spare_.pop_back();
  return loan;
}

void Bridge::end(std::unique_ptr<Loan> loan) {
  end(*loan);
  if (spare_.size() < 16) spare_.push_back(std::move(loan));
}

void Bridge::end(Loan& loan) {
  loan.arena.clear();
  if (loan.fields.capacity() > fields_kept) std::vector<rille_field>().swap(loan.fields);
  if (loan.functions.empty() && loan.handles.empty() && loan.anchor == LUA_NOREF) return;
  for (const std::uint64_t number : std::exchange(loan.functions, {}))
    if (std::optional<ScriptFunction> f = holdings().functions.drop(number); f && f->bridge)
      luaL_unref(host_.lua(), LUA_REGISTRYINDEX, f->ref);
  for (const std::uint64_t number : std::exchange(loan.handles, {})) (void)holdings().drop(number);
  luaL_unref(host_.lua(), LUA_REGISTRYINDEX, std::exchange(loan.anchor, LUA_NOREF));
  loan.anchored = 0;
}

// The coroutine for calls at the present depth. At its bottom is the handler that records tracebacks.
Result<Bridge::Frame*> Bridge::frame() {
  if (depth_ < frames_.size()) return frames_[depth_].get();
  if (depth_ >= nesting_max)
    return make_error(ErrorKind::state,
                      fmt::format("calls between the host program and scripts are nested {} deep", nesting_max));
  auto made = std::make_unique<Frame>(host_.options().memory);
  RILLE_CHECK(protect(host_.lua(), [&](lua_State* L) {
    made->L = lua_newthread(L);
    get_registry(L, &key_parents);
    lua_pushvalue(L, -2);
    lua_pushboolean(L, 1);
    lua_rawset(L, -3);
    lua_pop(L, 1);
    push_rille_core(L);
    lua_getfield(L, -1, "trace");
    lua_xmove(L, made->L, 1);
    lua_pop(L, 1);
    made->anchor = luaL_ref(L, LUA_REGISTRYINDEX);
  }));
  frames_.push_back(std::move(made));
  return frames_.back().get();
}

Result<> Bridge::push_arguments(Frame& f, int ref, const rille_value* arguments, std::size_t count) {
  lua_settop(f.L, 1);
  end(f.loan);
  lua_rawgeti(f.L, LUA_REGISTRYINDEX, ref);
  for (std::size_t i = 0; i < count; ++i) {
    if (arguments[i].kind == RILLE_VALUE_NUMBER) {
      lua_pushnumber(f.L, arguments[i].as.number);
    } else if (Result<> r = push_protected(f.L, arguments[i], ValueName{"argument", i + 1, {}}); !r) {
      return r;
    }
  }
  return {};
}

// Calls the function below the arguments on the frame's stack; the results are its values from 2 on.
Result<> Bridge::enter(Frame& f, Budget* budget, std::size_t argument_count, std::size_t result_count) {
  if (depth_ == 0 && budget) host_.renew(*budget);
  Entry entry(host_, budget);
  ++depth_;
  const int status = lua_pcall(f.L, static_cast<int>(argument_count), static_cast<int>(result_count), 1);
  --depth_;
  if (status != 0) return entry.error(f.L);
  if (entry.is_over()) return *entry.over();
  return {};
}

Result<> Bridge::call(int ref, Budget* budget, const rille_value* arguments, std::size_t argument_count,
                      rille_value* results, std::size_t result_count) {
  if (argument_count > arguments_max || result_count > arguments_max)
    return make_error(ErrorKind::invalid, fmt::format("a call has at most {} arguments and results", arguments_max));
  RILLE_TRY(Frame * f, frame());
  lua_State* L = f->L;
  if (argument_count + result_count > 10 && !lua_checkstack(L, static_cast<int>(argument_count + result_count)))
    return make_error(ErrorKind::memory, "no memory for the arguments of a call");
  RILLE_CHECK(push_arguments(*f, ref, arguments, argument_count));
  RILLE_CHECK(enter(*f, budget, argument_count, result_count));
  for (std::size_t i = 0; i < result_count; ++i) {
    const int at = static_cast<int>(i) + 2;
    if (lua_type(L, at) == LUA_TNUMBER) {
      results[i].kind = RILLE_VALUE_NUMBER;
      results[i].as.number = lua_tonumber(L, at);
    } else {
      RILLE_TRY(results[i], lend(L, at, f->loan, ValueName{"result", i + 1, {}}));
    }
  }
  return {};
}

Result<> Bridge::call_keeping(int ref, Budget* budget, int& kept) {
  RILLE_TRY(Frame * f, frame());
  RILLE_CHECK(push_arguments(*f, ref, nullptr, 0));
  RILLE_CHECK(enter(*f, budget, 0, 1));
  return protect_here(f->L, 1, 0, [&](lua_State* L) { kept = luaL_ref(L, LUA_REGISTRYINDEX); });
}

}  // namespace rille::capi
