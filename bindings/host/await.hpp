// Await: a binding starts work and suspends the calling fiber. When the work ends, the binding returns its result or
// raises its error in Lua. Works through pcall, metamethods, iterators and the script's coroutines.
//
//   int fetch(lua_State* L) {                       // registered with set_async(L, "fetch", bind<fetch>)
//     return await(L, download(url), [](lua_State* l, std::string body) { push(l, body); return 1; });
//   }
//
// A function that may wait must be registered by set_async, which wraps it in a Lua shim. The shim turns (true, ...)
// into return values and (false, error) into a raised error; without the shim the script would see these values. await
// must be the function's last act. The work starts only if the fiber can be suspended; otherwise a `state` error names
// the C function that prevents it (string.gsub, a sort comparator). If the fiber is already cancelled, the reason is
// raised and no work starts. A fiber cancelled while it waits resumes at once with the reason (for engine operations:
// as soon as the engine resolves them), and a later result is dropped. If the work completes at once, the fiber is not
// suspended.
#pragma once

#include <functional>
#include <memory>

#include "bindings/host/bind.hpp"
#include "runtime/core/base/guest.hpp"
#include "runtime/core/loop/loop.hpp"

namespace rille::host {

struct Fiber;
class LuaHost;

// Resumes one suspended fiber, once. All copies belong to the same suspension. A Completion may outlive the fiber and
// the host; finishing it then has no effect. `push` pushes the results and returns their number; it runs on the loop
// thread in a protected call.
class Completion {
 public:
  using Push = std::function<int(lua_State*)>;
  void finish(const Push& push) const { finish_with(&call, const_cast<Push*>(&push)); }
  void fail(const Error& error) const;
  // Callable from any thread: posts the result to the loop, which must outlive the call.
  void post_finish(Push push) const;
  void post_fail(Error error) const;
  // As finish, but without allocation: calls `fn(L, context)` to push the results.
  void finish_with(int (*fn)(lua_State*, void*), void* context) const;

 private:
  friend class LuaHost;
  static int call(lua_State* L, void* push) { return (*static_cast<Push*>(push))(L); }
  std::weak_ptr<LuaHost*> host_;
  Loop* loop_ = nullptr;
  FiberId fiber_ = 0;
  std::uint64_t suspension_ = 0;
};

enum class Waits {
  engine,   // the work is an operation of the Run, which resolves it when the fiber is cancelled
  here,     // any other work: the host resumes a cancelled fiber itself and drops the result
  cleanup,  // an operation of the Run that may start in a cancelled fiber too, for cleanup while unwinding
};

// begin_await raises unless the fiber may wait, and returns the Completion that ends the wait. Then start the work and
// `return end_await(L);`. The work may finish before end_await is called.
Completion begin_await(lua_State* L, Waits waits = Waits::here);
int end_await(lua_State* L);
// For functions that find out late whether they have to wait. may_wait: an error if the fiber cannot be suspended at
// this point. check_cancelled: raises the reason if the fiber was cancelled, as begin_await does.
Result<> may_wait(lua_State* L);
void check_cancelled(lua_State* L);
// suspend yields from the coroutine. unpack_result is called by the shim with the yield's results: it returns the
// values of (true, values...) and raises the error of (false, error).
int suspend(lua_State* L);
int unpack_result(lua_State* L);

namespace detail {

// The C++ coroutine that awaits the work of one suspension. The host owns all active Drivers; its destructor destroys
// them and the work that they await.
struct Driver {
  struct Node {
    Node* before = this;
    Node* after = this;
    std::coroutine_handle<> handle;
    void insert(Node& n) {
      n.before = before;
      n.after = this;
      before->after = &n;
      before = &n;
    }
    void unlink() {
      before->after = after;
      after->before = before;
      before = after = this;
    }
  };
  struct promise_type : Node, rille::detail::PooledFrame {
    Driver get_return_object() { return {this}; }
    std::suspend_always initial_suspend() noexcept { return {}; }
    struct Last {
      bool await_ready() noexcept { return false; }
      void await_suspend(std::coroutine_handle<promise_type> h) noexcept {
        h.promise().unlink();
        h.destroy();
      }
      void await_resume() noexcept {}
    };
    Last final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }  // never called, because drive() catches every exception
  };
  promise_type* promise;
};

template <class T, class Push>
Driver drive(Completion done, Async<T> work, Push push) {
  std::optional<Result<T>> result;
  try {
    result.emplace(co_await std::move(work));
  } catch (const std::exception& e) { result.emplace(error_from_exception(e)); }
  if (!*result) {
    done.fail(result->error());
    co_return;
  }
  struct Context {
    Push& push;
    Result<T>& result;
  } context{push, *result};
  done.finish_with(
      [](lua_State* L, void* p) -> int {
        auto& c = *static_cast<Context*>(p);
        if constexpr (std::is_void_v<T>) return c.push(L);
        else return c.push(L, std::move(*c.result));
      },
      &context);
}

void begin(lua_State* L, Driver driver);

}  // namespace detail

template <class T, class Push>
int await(lua_State* L, Async<T> work, Push push, Waits waits = Waits::here) {
  Completion done = begin_await(L, waits);
  detail::begin(L, detail::drive<T, Push>(std::move(done), std::move(work), std::move(push)));
  return end_await(L);
}

// The coroutine that resumed `co` (by coroutine.resume or wrap); null if `co` is a fiber's main coroutine.
lua_State* parent_coroutine(lua_State* co);
// Counts the scopes and steps that a coroutine of the script is in: `by` 1 at the start of one, -1 at its end. While
// the count is positive the coroutine cannot yield, because another fiber could resume it inside this fiber's scope.
void hold_coroutine(lua_State* co, const Fiber& fiber, int by);

// Sets field `name` of the table on top of the stack to the shim around `function`.
void set_async(lua_State* L, const char* name, lua_CFunction function);
// Replaces the function on top of the stack by the shim around it.
void wrap_async(lua_State* L);

}  // namespace rille::host
