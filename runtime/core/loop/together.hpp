// together: runs several tasks at once and returns all results in the tasks' order. A failed or slow task does not
// affect the others; with `patience_ms`, each task that takes longer gets `timeout`. If the task that awaits all of
// them is destroyed, so are they, where they are suspended. Loop thread only.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/core/loop/loop.hpp"

namespace rille {

template <class T>
struct Together {
  std::string what;                            // names the task in the `timeout` error
  std::function<Async<T>(CancelToken)> start;  // starts the task, which must stop when the token is cancelled
};

namespace detail {
// A coroutine that runs beside its owner from start() on, and is destroyed with its Branch.
class Branch {
 public:
  struct promise_type : PooledFrame {
    Branch get_return_object() { return Branch(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }  // as of a task that the loop owns
  };

  Branch(Branch&& o) noexcept : handle_(std::exchange(o.handle_, {})) {}
  Branch(const Branch&) = delete;
  ~Branch() {
    if (handle_) handle_.destroy();
  }
  void start() const { handle_.resume(); }

 private:
  explicit Branch(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};
}  // namespace detail

template <class T>
Task<std::vector<Result<T>>> together(Loop& loop, std::vector<Together<T>> all, std::int64_t patience_ms,
                                      CancelToken token) {
  struct State {
    explicit State(Loop& l) : done(l) {}
    std::vector<std::optional<Result<T>>> answers;
    std::size_t left = 0;
    Future<bool> done;
  };
  const auto state = std::make_shared<State>(loop);
  state->answers.resize(all.size());
  state->left = all.size();
  const auto one = [](Loop& l, Together<T> t, std::int64_t ms, CancelToken cancel, std::shared_ptr<State> s,
                      std::size_t at) -> detail::Branch {
    if (ms > 0) s->answers[at] = co_await with_deadline(l, ms, cancel, t.what, t.start);
    else s->answers[at] = co_await t.start(cancel);
    if (--s->left == 0) s->done.set(true);
  };
  std::vector<detail::Branch> branches;
  branches.reserve(all.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    branches.push_back(one(loop, std::move(all[i]), patience_ms, token, state, i));
  for (const detail::Branch& branch : branches) branch.start();
  if (state->left > 0) co_await state->done;
  std::vector<Result<T>> out;
  for (std::optional<Result<T>>& answer : state->answers) out.push_back(std::move(*answer));
  co_return out;
}

}  // namespace rille
