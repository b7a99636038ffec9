// bind<Fn> wraps every C++ function that Lua calls. It turns an error Result and any std::exception into a structured
// Lua error, raised outside the try block, and lets Lua's errors pass through.
//   int add(lua_State* L)          or          Result<int> add(lua_State* L)
//   set_functions(L, {{"add", bind<add>}});
// The function returns the number of values it pushed, as in plain Lua. `handler`: it handles errors, and so is called
// where the stack is full.
#pragma once

#include <exception>
#include <new>
#include <type_traits>

#include "bindings/host/errors.hpp"
#include "bindings/host/state.hpp"
#include "runtime/core/base/result.hpp"

namespace rille::host {

Error error_from_exception(const std::exception& e);

template <auto Fn, bool handler = false>
int bind(lua_State* L) {
  if constexpr (!handler) check_stack(L);
  std::optional<Error> failure;
  try {
    if constexpr (std::is_same_v<decltype(Fn(L)), int>) {
      return Fn(L);
    } else {
      Result<int> r = Fn(L);
      if (r.ok()) return *r;
      failure.emplace(std::move(r).error());
    }
  } catch (const std::exception& e) {  // never catch (...), which would swallow Lua's errors
    failure.emplace(error_from_exception(e));
  }
  raise(L, std::move(*failure));
}

// Returns the value of `r`; raises the error in Lua if there is one.
template <class T>
T value_or_raise(lua_State* L, Result<T> r) {
  if (!r) raise(L, std::move(r).error());
  if constexpr (!std::is_void_v<T>) return std::move(r).value();
}

// Runs `fn(L)` in a protected call, so that a Lua error (out of memory, a failing metamethod) becomes a Result instead
// of a panic. For code that uses a Lua state outside of any Lua call. Values that fn leaves on the stack are dropped.
// `fn` may use 1 MiB beyond the memory limit, so that a memory error can still be reported.
template <class F>
Result<> protect(lua_State* L, F&& fn) {
  LuaState::Reserve reserve(L);
  int rc = lua_cpcall(
      L,
      [](lua_State* l) -> int {
        auto* f = static_cast<std::remove_reference_t<F>*>(lua_touserdata(l, 1));
        lua_settop(l, 0);
        (*f)(l);
        return 0;
      },
      &fn);
  if (rc == 0) return {};
  Error e = to_error(L, -1);
  lua_pop(L, 1);
  return e;
}

}  // namespace rille::host
