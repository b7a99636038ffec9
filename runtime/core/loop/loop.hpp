// Loop: one libuv loop per runtime. All work of a runtime happens on the thread that turns its Loop, except
// post_from_thread and thread jobs. A completed operation never resumes its waiter directly: it queues the waiter, and
// the loop resumes it later, so that no waiter runs while an object further up the stack is half changed.
// The loop installs no signal handler and raises no SIGPIPE.
// A loop with virtual time never waits for a timer: see virtual_time.hpp.
#pragma once

#include <uv.h>

#include <atomic>
#include <coroutine>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "runtime/core/base/result.hpp"
#include "runtime/core/base/time.hpp"
#include "runtime/core/loop/cancel.hpp"
#include "runtime/core/loop/task.hpp"
#include "runtime/core/loop/virtual_time.hpp"

namespace rille {

class Loop {
 public:
  static Result<std::unique_ptr<Loop>> create(const Clock& clock = system_clock());
  static Result<std::unique_ptr<Loop>> create_virtual(VirtualTime& time);
  ~Loop();  // also destroys the coroutines of unfinished tasks
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  uv_loop_t* uv() { return &uv_; }
  const Clock& clock() const { return clock_; }

  // Queues `fn` to run on the loop thread, in the order of the calls.
  void post(std::function<void()> fn);
  void post(std::coroutine_handle<> waiter) {
    post([waiter] { waiter.resume(); });
  }
  void post_from_thread(std::function<void()> fn);  // callable from any thread; wakes the loop
  // Announces a later post from another thread that no libuv handle tracks, so that virtual time waits for the post.
  void expect() { ++expected_; }
  void arrived() { --expected_; }
  // For thread_job: counts the running jobs. libuv's threads use the loop when a job finishes, so ~Loop waits for zero.
  void job_began() { ++jobs_; }
  void job_ended() { --jobs_; }

  // Starts a task without awaiting it. The loop owns the task until it ends or the loop is destroyed.
  void spawn(Task<void> task);

  // Destroys the coroutines of all spawned tasks where they are suspended. For an owner that ends before the loop.
  void abandon_tasks();

  // Turns the loop until `done` returns true. Blocks in poll when there is nothing to do. With virtual time it also
  // returns when no event remains.
  void run_until(const std::function<bool()>& done);
  // For host programs that drive the loop: runs ready work for about budget_ms and never blocks. True: work remains.
  bool turn(int budget_ms);
  int poll_fd() const { return uv_backend_fd(&uv_); }
  // how long the host may wait for poll_fd() to be readable; 0: call turn() at once; -1: no time limit
  int poll_timeout_ms();
  VirtualTime* virtual_time() { return virtual_; }

 private:
  explicit Loop(const Clock& clock) : clock_(clock) {}
  // runs the functions that are ready now; the rest stays first in the queue
  void drain(std::int64_t until_ns = INT64_MAX);
  bool look_out();
  void take_posts();
  bool nothing_under_way() const { return ready_.empty() && expected_ == 0 && !uv_loop_alive(&uv_); }

  struct Spawned;
  const Clock& clock_;
  VirtualTime* virtual_ = nullptr;
  std::int64_t expected_ = 0;  // posts from other threads announced by expect() that have not arrived
  std::int64_t jobs_ = 0;
  uv_loop_t uv_{};
  bool initialized_ = false;
  int wake_fd_ = -1;  // eventfd that wakes a sleeping loop after a thread's post
  uv_poll_t wake_{};
  uv_idle_t spin_{};  // active while ready_ is not empty, so that poll does not block
  std::deque<std::function<void()>> ready_;
  std::mutex mutex_;  // guards from_threads_
  std::vector<std::function<void()>> from_threads_;
  std::atomic<bool> looks_out_{false};  // true while the loop spins for a post, so the poster need not wake it
  std::atomic<int> waking_{0};          // threads that have queued a post and not yet finished using the loop
  std::int64_t looked_ns_ = 0;          // loop thread only: total time of the current series of spins without a post
  // loop thread only: failed series in a row; turns to skip before spinning again
  int looks_in_vain_ = 0, looks_later_ = 0;
  std::unordered_set<Spawned*> spawned_;
};

// A value that is set once and awaited by one waiter. set() may come before or after the await; only the first set()
// counts. The waiter resumes from the loop's queue. Loop thread only. Copies of a Future share one value.
template <class T>
class Future {
 public:
  explicit Future(Loop& loop) : state_(std::make_shared<State>(State{loop, {}, {}})) {}
  bool is_set() const { return state_->value.has_value(); }
  void set(T value) const {
    if (state_->value) return;
    state_->value.emplace(std::move(value));
    if (state_->waiter) {
      // The state keeps the waiter's handle until it resumes, so that a waiter destroyed before then is never resumed.
      state_->loop.post([state = state_] {
        if (auto h = std::exchange(state->waiter, {})) h.resume();
      });
    }
  }
  auto operator co_await() const {
    struct Awaiter {
      std::shared_ptr<State> state;
      bool await_ready() const noexcept { return state->value.has_value(); }
      void await_suspend(std::coroutine_handle<> h) noexcept { state->waiter = h; }
      T await_resume() { return std::move(*state->value); }
      ~Awaiter() {
        if (state) state->waiter = {};
      }
    };
    return Awaiter{state_};
  }

 private:
  struct State {
    Loop& loop;
    std::optional<T> value;
    std::coroutine_handle<> waiter;
  };
  std::shared_ptr<State> state_;
};

// Sleeps for `ms`. If `token` is cancelled, fails with the token's reason.
Async<> sleep_for(Loop& loop, std::int64_t ms, CancelToken token = {});

// Runs `fn` with a child token; after `ms` the token is cancelled with a `timeout` error that names `what`.
// with_deadline still waits for `fn` to end, so `fn` must react to the token.
template <class Fn>
auto with_deadline(Loop& loop, std::int64_t ms, CancelToken parent, std::string what, Fn fn)
    -> decltype(fn(std::declval<CancelToken>()));

// Calls `fn` once after `ms`, unless the Timer is destroyed before. Loop thread only.
class Timer {
 public:
  Timer(Loop& loop, std::int64_t ms, std::function<void()> fn);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  struct Handle;
  Handle* handle_;
};

template <class Fn>
auto with_deadline(Loop& loop, std::int64_t ms, CancelToken parent, std::string what, Fn fn)
    -> decltype(fn(std::declval<CancelToken>())) {
  CancelSource source(parent);
  Timer timer(loop, ms, [&source, ms, &what] {
    source.cancel(make_error(ErrorKind::timeout, what + " took longer than " + format_duration_ms(ms),
                             "check the network and the load of this machine, then run it again"));
  });
  co_return co_await fn(source.token());
}

// Turns the loop until the task has ended. For main programs and tests; never call it inside a callback.
template <class T>
T run_blocking(Loop& loop, Task<T> task) {
  std::optional<T> out;
  bool done = false;
  auto outer = [](Task<T> inner, std::optional<T>& result, bool& flag) -> Task<void> {
    struct Flag {
      bool& f;
      ~Flag() { f = true; }
    } at_end{flag};
    result.emplace(co_await std::move(inner));
  };
  loop.spawn(outer(std::move(task), out, done));
  loop.run_until([&] { return done; });
  return std::move(*out);
}

}  // namespace rille
