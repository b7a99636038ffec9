// Task<T>: a C++20 coroutine that starts when it is awaited. A Task has one owner. Awaiting it yields its value;
// destroying it destroys the suspended coroutine and all that the coroutine owns. Errors are values (Task<Result<T>>,
// alias Async<T>); an exception that escapes, such as std::bad_alloc, is rethrown to the awaiter. Loop thread only.
// Coroutine frames are allocated in frame_pool.hpp.
//
// GCC 12 bug: inside a co_await expression, or in a default argument `{}`, an aggregate made with braces is copied bit
// by bit into the coroutine frame and destroyed twice. A closure with captures is treated alike. Types that are passed
// to coroutines as temporaries therefore have a constructor, and closures are named (std::function) before the co_await
// expression.
#pragma once

#include <coroutine>
#include <exception>
#include <optional>
#include <utility>

#include "runtime/core/base/result.hpp"
#include "runtime/core/loop/frame_pool.hpp"

namespace rille {

template <class T = void>
class Task;

// The return type of nearly every function that waits: a Task that yields a Result<T>.
template <class T = void>
using Async = Task<Result<T>>;

namespace detail {

struct PromiseBase : PooledFrame {
  std::coroutine_handle<> continuation = std::noop_coroutine();
  std::exception_ptr exception;

  struct FinalAwaiter {
    bool await_ready() noexcept { return false; }
    template <class P>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<P> h) noexcept {
      return h.promise().continuation;
    }
    void await_resume() noexcept {}
  };
  std::suspend_always initial_suspend() noexcept { return {}; }
  FinalAwaiter final_suspend() noexcept { return {}; }
  void unhandled_exception() noexcept { exception = std::current_exception(); }
};

template <class T>
struct Promise : PromiseBase {
  std::optional<T> value;
  Task<T> get_return_object();
  template <class U>
  void return_value(U&& v) {
    value.emplace(std::forward<U>(v));
  }
  T take() {
    if (exception) std::rethrow_exception(exception);
    return std::move(*value);
  }
};

template <>
struct Promise<void> : PromiseBase {
  Task<void> get_return_object();
  void return_void() {}
  void take() {
    if (exception) std::rethrow_exception(exception);
  }
};

}  // namespace detail

template <class T>
class [[nodiscard]] Task {
 public:
  using promise_type = detail::Promise<T>;
  using Handle = std::coroutine_handle<promise_type>;

  Task() = default;
  explicit Task(Handle h) : handle_(h) {}
  Task(Task&& o) noexcept : handle_(std::exchange(o.handle_, {})) {}
  Task& operator=(Task&& o) noexcept {
    if (this != &o) {
      reset();
      handle_ = std::exchange(o.handle_, {});
    }
    return *this;
  }
  Task(const Task&) = delete;
  ~Task() { reset(); }

  explicit operator bool() const { return static_cast<bool>(handle_); }

  auto operator co_await() && noexcept {
    struct Awaiter {
      Handle handle;
      bool await_ready() noexcept { return false; }
      std::coroutine_handle<> await_suspend(std::coroutine_handle<> waiter) noexcept {
        handle.promise().continuation = waiter;
        return handle;
      }
      T await_resume() { return handle.promise().take(); }
    };
    return Awaiter{handle_};
  }

 private:
  void reset() {
    if (handle_) std::exchange(handle_, {}).destroy();
  }
  Handle handle_;
};

namespace detail {
template <class T>
Task<T> Promise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<Promise<T>>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<Promise<void>>::from_promise(*this));
}
}  // namespace detail

}  // namespace rille
