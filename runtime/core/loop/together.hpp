// together: runs several tasks at once and returns all results in the tasks' order. A failed or slow task does not
// affect the others; with `patience_ms`, each task that takes longer gets `timeout`. Loop thread only.
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
                      std::size_t at) -> Task<void> {
    if (ms > 0) s->answers[at] = co_await with_deadline(l, ms, cancel, t.what, t.start);
    else s->answers[at] = co_await t.start(cancel);
    if (--s->left == 0) s->done.set(true);
  };
  for (std::size_t i = 0; i < all.size(); ++i) loop.spawn(one(loop, std::move(all[i]), patience_ms, token, state, i));
  if (state->left > 0) co_await state->done;
  std::vector<Result<T>> out;
  for (std::optional<Result<T>>& answer : state->answers) out.push_back(std::move(*answer));
  co_return out;
}

}  // namespace rille
